//! YAML: documents one at a time, lists item by item.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Error, Options};

use super::error::{InputError, plain};
use super::node::{Data, Mismatch, Node};
use super::place::Place;
use super::sink::{Around, EVERY_DOCUMENT, Head, Item, Sink};
use crate::cluster::kinds::{Kind, Listings};

/// Nesting of a document; serde_json's limit for JSON, and well above what the API server's types need.
const DEPTH: usize = 128;

/// Values that aliases may add to a document: hand-written anchors stay far below, bombs end at once.
const REPLAYED: usize = 200_000;

/// Reads all documents.
pub(super) fn read(text: &str, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let documents = documents(text);
    let mut line = (0_u32, 0);
    for (index, range) in documents.iter().enumerate() {
        line = (line.0 + newlines(&text[line.1..range.start]), range.start);
        let start = Place {
            line: 1 + line.0,
            column: 1,
        };
        let number = (documents.len() > 1).then(|| u32::try_from(index + 1).unwrap_or(u32::MAX));
        document(&text[range.clone()], start, sink).map_err(|mut error| {
            error.document = number;
            error
        })?;
    }
    Ok(())
}

fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|&byte| byte == b'\n').count()).unwrap_or(u32::MAX)
}

/// Cuts at document markers, leaving out documents without content. At the beginning of a line a marker is one
/// even within quotes and blocks (YAML 1.2, 9.1.2), so lines suffice.
fn documents(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut offset) = (0, 0);
    let (mut marked, mut content) = (false, false);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let marker = |marker: &str| {
            bare.strip_prefix(marker)
                .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        };
        let begins = marker("---");
        if begins.is_some() && (marked || content) || marker("...").is_some() {
            if content {
                found.push(start..offset);
            }
            start = if begins.is_some() { offset } else { offset + line.len() };
            (marked, content) = (begins.is_some(), false);
        }
        let rest = begins.unwrap_or(bare).trim_start();
        marked |= begins.is_some();
        content |= !(rest.is_empty() || rest.starts_with('#') || !marked && rest.starts_with('%') || marker("...").is_some());
        offset += line.len();
    }
    if content {
        found.push(start..offset);
    }
    found
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            // The input's size bounds what it holds itself; aliases are what could multiply it.
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAYED },
        emit_comments: false,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

fn document(text: &str, start: Place, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let mut failed = None;
    let seed = Document {
        text,
        start,
        sink,
        failed: &mut failed,
    };
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(text, options(), |deserializer| seed.deserialize(deserializer));
    let items = match (failed, parsed) {
        (Some(error), _) => return Err(error),
        (None, Err(error)) => return Err(syntax(&error, text, start)),
        (None, Ok(parsed)) => parsed,
    };
    let Some((fields, items)) = items else { return Ok(()) };
    sink.tally.documents += 1;
    let line = 1 + text.lines().take_while(|line| is_empty(line)).count() as u64;
    let whole = Located {
        node: Node {
            line,
            column: 1,
            data: Data::Object(fields),
        },
        text,
        start,
    };
    sink.document(whole, items)
}

/// What the parser refused, in our words where it would speak of its options.
fn syntax(error: &serde_saphyr::Error, text: &str, start: Place) -> InputError {
    let mut cause = error.without_snippet();
    while let Error::AliasError { error, .. } = cause {
        cause = error;
    }
    let wrong = match cause {
        Error::SerdeInvalidType { unexpected, expected, .. } => {
            let found = match (unexpected.as_str(), unexpected.strip_prefix("string ")) {
                ("sequence", _) => "a list".to_owned(),
                ("map", _) => "an object".to_owned(),
                (_, Some(text)) => format!("the text {}", plain(text)),
                (other, None) => plain(other),
            };
            InputError::new(format!("expected {expected}, found {found}")).with_hint(EVERY_DOCUMENT)
        }
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => InputError::new(format!("nested more than {DEPTH} deep")),
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } | Error::AliasReplayStackDepthExceeded { .. } => {
            InputError::new("its aliases (*) expand to more than any manifest needs")
        }
        Error::DuplicateMappingKey { key, .. } => {
            InputError::new(format!("the field {} is there twice", plain(key.as_deref().unwrap_or_default())))
        }
        other => {
            let message = other.to_string();
            let message = message.split_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            InputError::new(format!("not YAML: {}", plain(message)))
        }
    };
    let place = error
        .location()
        .filter(|location| location.line() > 0)
        .map_or(start, |location| start.plus(location.line(), location.column()));
    // The parser notices a tab at its line or at the one after.
    let mut near = text.lines().skip((place.line - start.line).saturating_sub(1) as usize).take(2);
    let wrong = if near.any(|line| line.trim_start_matches([' ', '-']).starts_with('\t')) {
        wrong.with_hint("YAML is indented with spaces: replace the tabs")
    } else if text.ends_with('\n') {
        wrong.with_hint(super::CORRECT)
    } else {
        wrong.with_hint("the input may be cut, as it does not end with a line break: capture the objects again")
    };
    wrong.at(place).showing(text, start)
}

/// Whether a line of a document holds nothing of it.
fn is_empty(line: &str) -> bool {
    let line = line.strip_prefix("---").unwrap_or(line).trim_start();
    line.is_empty() || line.starts_with(['#', '%'])
}

/// The fields of a document besides `items`, and the items held back, if it has a list of items.
type Frame<'t> = (Vec<(String, Node)>, Option<Vec<Located<'t>>>);

/// Reads the top of a document, and feeds the sink with `items` on the way.
struct Document<'t, 's, 'l> {
    text: &'t str,
    start: Place,
    sink: &'s mut Sink<'l>,
    failed: &'s mut Option<InputError>,
}

impl<'de, 't> DeserializeSeed<'de> for Document<'t, '_, '_> {
    type Value = Option<Frame<'t>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, 't> Visitor<'de> for Document<'t, '_, '_> {
    type Value = Option<Frame<'t>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a Kubernetes object")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        let mut items = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" {
                let head = Head::deserialize(&Node {
                    line: 1,
                    column: 1,
                    data: Data::Object(fields.clone()),
                })
                .unwrap_or_default();
                let around = Around::of(&head);
                items = map.next_value_seed(Items {
                    text: self.text,
                    start: self.start,
                    sink: self.sink,
                    failed: self.failed,
                    around,
                })?;
            } else {
                let mut value: Node = map.next_value()?;
                value.restore_text(self.text);
                fields.push((key, value));
            }
        }
        Ok(Some((fields, items)))
    }
}

struct Items<'t, 's, 'l> {
    text: &'t str,
    start: Place,
    sink: &'s mut Sink<'l>,
    failed: &'s mut Option<InputError>,
    around: Around,
}

impl<'de, 't> DeserializeSeed<'de> for Items<'t, '_, '_> {
    type Value = Option<Vec<Located<'t>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, 't> Visitor<'de> for Items<'t, '_, '_> {
    type Value = Option<Vec<Located<'t>>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of objects")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut held = Vec::new();
        while let Some(mut node) = sequence.next_element::<Node>()? {
            node.restore_text(self.text);
            match self.sink.item(
                Located {
                    node,
                    text: self.text,
                    start: self.start,
                },
                &self.around,
            ) {
                Ok(item) => held.extend(item),
                Err(error) => {
                    *self.failed = Some(error);
                    return Err(A::Error::custom("told apart"));
                }
            }
        }
        Ok(Some(held))
    }
}

/// A value, and the document that it is from.
struct Located<'t> {
    node: Node,
    text: &'t str,
    start: Place,
}

impl Located<'_> {
    fn mismatch(&self, kind: Option<Kind>, mismatch: &Mismatch) -> InputError {
        let (line, column) = mismatch.place;
        super::wrong_type(&self.node, kind, mismatch)
            .at(self.start.plus(line, column))
            .showing(self.text, self.start)
    }
}

impl Item for Located<'_> {
    fn part<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        T::deserialize(&self.node).map_err(|mismatch| self.mismatch(None, &mismatch))
    }

    fn load(self, kind: Kind, listings: &mut Listings) -> Result<(), InputError> {
        listings
            .insert(kind, &self.node)
            .map_err(|mismatch| self.mismatch(Some(kind), &mismatch))
    }

    fn list(self, sink: &mut Sink<'_>) -> Result<(), InputError> {
        let Self { mut node, text, start } = self;
        let mut items = None;
        if let Data::Object(fields) = &mut node.data
            && let Some(index) = fields
                .iter()
                .position(|(key, value)| key == "items" && matches!(value.data, Data::List(_)))
            && let Data::List(nodes) = fields.swap_remove(index).1.data
        {
            items = Some(nodes.into_iter().map(|node| Located { node, text, start }).collect());
        }
        sink.document(Located { node, text, start }, items)
    }

    fn blame(&self, error: InputError) -> InputError {
        error
            .at(self.start.plus(self.node.line, self.node.column))
            .showing(self.text, self.start)
    }
}
