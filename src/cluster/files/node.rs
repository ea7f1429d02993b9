//! A parsed value that knows where it came from, and can tell which field has the wrong type.

use std::fmt;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Number, Value};
use serde_saphyr::Spanned;

use super::error::plain;

/// A value and its place, counted from the start of the parsed text; zero where that is not known.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) data: Data,
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    Null,
    Bool(bool),
    Number(Number),
    /// A number in YAML that no float can hold, and the bytes that it was parsed from.
    Infinite(Range<usize>),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// A field of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        match &self.data {
            Data::Object(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A field of an object, if it is text.
    pub(super) fn text(&self, name: &str) -> &str {
        match self.get(name).map(|node| &node.data) {
            Some(Data::Text(text)) => text,
            _ => "",
        }
    }

    /// Turns back into text what looks like a number with an exponent beyond all bounds, such as the commit `6e87543`:
    /// kubectl prints such text without quotes. `text` is what the value was parsed from.
    pub(super) fn restore_text(&mut self, text: &str) {
        match &mut self.data {
            Data::Infinite(bytes) => {
                if let Some(token) = text.get(bytes.clone()).filter(|token| token.contains(['e', 'E'])) {
                    self.data = Data::Text(token.to_owned());
                }
            }
            Data::List(items) => items.iter_mut().for_each(|item| item.restore_text(text)),
            Data::Object(fields) => fields.iter_mut().for_each(|(_, value)| value.restore_text(text)),
            _ => {}
        }
    }

    fn unexpected(&self) -> Unexpected<'_> {
        match &self.data {
            Data::Null => Unexpected::Unit,
            Data::Bool(value) => Unexpected::Bool(*value),
            Data::Number(_) | Data::Infinite(_) => Unexpected::Other("number"),
            Data::Text(text) => Unexpected::Str(text),
            Data::List(_) => Unexpected::Seq,
            Data::Object(_) => Unexpected::Map,
        }
    }

    /// What it is, in words.
    fn description(&self) -> String {
        match &self.data {
            Data::Null => "nothing".to_owned(),
            Data::Bool(value) => value.to_string(),
            Data::Number(number) => format!("the number {number}"),
            Data::Infinite(_) => "a number beyond all bounds".to_owned(),
            Data::Text(text) => format!("the text \"{}\"", plain(text)),
            Data::List(_) => "a list".to_owned(),
            Data::Object(_) => "an object".to_owned(),
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(value) => Data::Bool(value),
            Value::Number(number) => Data::Number(number),
            Value::String(text) => Data::Text(text),
            Value::Array(items) => Data::List(items.into_iter().map(Node::from).collect()),
            Value::Object(fields) => Data::Object(fields.into_iter().map(|(key, value)| (key, Node::from(value))).collect()),
        };
        Self { line: 0, column: 0, data }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value: mut data, defined, ..
        } = Spanned::<Data>::deserialize(deserializer)?;
        if let Data::Infinite(bytes) = &mut data {
            let number = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok()).unwrap_or_default();
            let start = number(defined.span().byte_offset());
            *bytes = start..start.saturating_add(number(defined.span().byte_len()));
        }
        Ok(Self {
            line: defined.line(),
            column: defined.column(),
            data,
        })
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value that JSON can hold")
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_none<E>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Data, E> {
        Ok(Data::Number(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Data, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Data, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Data, E> {
        Ok(Number::from_f64(value).map_or(Data::Infinite(0..0), Data::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Data, E> {
        Ok(Data::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Data, E> {
        Ok(Data::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Data::Object(fields))
    }
}

/// A step from a value into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Field(String),
    Index(usize),
}

/// A field of a wrong type.
#[derive(Debug)]
pub(super) struct Mismatch {
    /// The way to the field, the last step first.
    pub(super) steps: Vec<Step>,
    /// Line and column, as in [`Node`].
    pub(super) place: (u64, u64),
    expected: String,
    found: Option<String>,
}

impl Mismatch {
    /// Whether text was expected where something that is not text, list or object was found.
    pub(super) fn wants_text(&self) -> bool {
        self.expected == "text" && !matches!(self.found.as_deref(), Some("a list" | "an object" | "nothing"))
    }

    /// Completes what the failing value could not know: itself.
    fn about(mut self, node: &Node) -> Self {
        if self.found.is_none() {
            self.found = Some(node.description());
            self.place = (node.line, node.column);
        }
        self
    }

    fn within(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for step in self.steps.iter().rev() {
            match step {
                Step::Index(index) => write!(formatter, "[{index}]")?,
                Step::Field(name)
                    if name
                        .chars()
                        .all(|character| character.is_ascii_alphanumeric() || character == '_' || character == '-') =>
                {
                    write!(formatter, "{}{name}", if first { "" } else { "." })?;
                }
                Step::Field(name) => write!(formatter, "[\"{}\"]", plain(name))?,
            }
            first = false;
        }
        if !first {
            formatter.write_str(": ")?;
        }
        write!(
            formatter,
            "expected {}, found {}",
            self.expected,
            self.found.as_deref().unwrap_or("something else")
        )
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            steps: Vec::new(),
            place: (0, 0),
            expected: message.to_string(),
            found: None,
        }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        Self::custom(match expected.as_str() {
            "a string" | "string or map" | "variant identifier" => "text",
            "a boolean" => "true or false",
            "i64" => "a whole number",
            "a sequence" => "a list",
            "a map" => "an object",
            other if other.starts_with("struct ") => "an object",
            other if other.starts_with("enum ") => "text",
            other => other,
        })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(found, expected)
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match &self.data {
            Data::Null => visitor.visit_unit(),
            Data::Bool(value) => visitor.visit_bool(*value),
            Data::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => visitor.visit_i64(value),
                (_, Some(value), _) => visitor.visit_u64(value),
                (_, _, value) => visitor.visit_f64(value.unwrap_or(f64::NAN)),
            },
            Data::Infinite(_) => visitor.visit_f64(f64::INFINITY),
            Data::Text(text) => visitor.visit_borrowed_str(text),
            Data::List(items) => visitor.visit_seq(Items {
                items: items.iter(),
                index: 0,
            }),
            Data::Object(fields) => visitor.visit_map(Fields {
                fields: fields.iter(),
                value: None,
            }),
        }
        .map_err(|error: Mismatch| error.about(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.data {
            Data::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.data {
            Data::Object(_) => self.deserialize_any(visitor),
            _ => Err(<Mismatch as de::Error>::custom("an object").about(self)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, Mismatch> {
        match &self.data {
            Data::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(de::Error::invalid_type(self.unexpected(), &"text")),
        }
        .map_err(|error: Mismatch| error.about(self))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct identifier ignored_any
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mismatch> {
        let Some(node) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(node)
            .map(Some)
            .map_err(|error| error.about(node).within(Step::Index(index)))
    }
}

struct Fields<'de> {
    fields: std::slice::Iter<'de, (String, Node)>,
    value: Option<&'de (String, Node)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mismatch> {
        self.value = self.fields.next();
        self.value
            .map(|(key, _)| seed.deserialize(key.as_str().into_deserializer()))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        let Some((key, node)) = self.value.take() else {
            return Err(de::Error::custom("a field's name before its value"));
        };
        seed.deserialize(node)
            .map_err(|error| error.about(node).within(Step::Field(key.clone())))
    }
}
