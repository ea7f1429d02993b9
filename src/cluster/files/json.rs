//! JSON: documents one after the other, lists item by item, so that memory holds one object's text at a time.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use super::Limits;
use super::error::{InputError, plain};
use super::node::{Mismatch, Node, Step};
use super::place::Place;
use super::sink::{Around, Item, Sink};
use crate::cluster::kinds::{Kind, Listings};

/// Reads all documents.
pub(super) fn read(reader: impl BufRead, limits: Limits, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let mut scanner = Scanner {
        reader,
        place: Place::START,
        left: limits.json,
        limits,
    };
    loop {
        scanner.white()?;
        match scanner.peek()? {
            None => return Ok(()),
            Some(b'{') => {
                sink.tally.documents += 1;
                scanner.document(sink)?;
            }
            Some(byte) => {
                return Err(InputError::new(format!("expected an object, found {}", shown(byte)))
                    .at(scanner.place)
                    .with_hint("JSON input is one object after the other, each beginning with {"));
            }
        }
    }
}

fn shown(byte: u8) -> String {
    match byte {
        b'[' => "a list".to_owned(),
        b'"' => "text".to_owned(),
        0x21..=0x7e => format!("`{}`", byte as char),
        _ => format!("the byte 0x{byte:02x}"),
    }
}

/// Takes documents apart without understanding them: it knows strings and brackets, and leaves the grammar to the
/// parser that reads what it cut out.
struct Scanner<R> {
    reader: R,
    place: Place,
    /// Bytes that may still come.
    left: u64,
    limits: Limits,
}

impl<R: BufRead> Scanner<R> {
    fn fill(&mut self) -> Result<&[u8], InputError> {
        let place = self.place;
        self.reader.fill_buf().map_err(|error| super::io_error(&error).at(place))
    }

    fn peek(&mut self) -> Result<Option<u8>, InputError> {
        Ok(self.fill()?.first().copied())
    }

    /// Moves over the first bytes of the buffer, into `out`.
    fn take(&mut self, count: usize, out: &mut Vec<u8>) -> Result<(), InputError> {
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| super::over("JSON input", self.limits.json).with_hint("capture fewer kinds at a time: -f may be repeated"))?;
        if out.len() + count > self.limits.object {
            return Err(super::over("object", self.limits.object as u64).at(self.place));
        }
        let place = self.place;
        let buffer = self.fill()?;
        let bytes = &buffer[..count.min(buffer.len())];
        out.extend_from_slice(bytes);
        self.place = place.after(bytes);
        self.reader.consume(count);
        Ok(())
    }

    /// Moves over white space, into `out`.
    fn white_into(&mut self, out: &mut Vec<u8>) -> Result<(), InputError> {
        loop {
            let buffer = self.fill()?;
            let count = buffer.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(buffer.len());
            if count == 0 {
                return Ok(());
            }
            self.take(count, out)?;
        }
    }

    fn white(&mut self) -> Result<(), InputError> {
        loop {
            let mut skipped = Vec::new();
            let buffer = self.fill()?;
            let count = buffer
                .iter()
                .take(4096)
                .position(|byte| !byte.is_ascii_whitespace())
                .unwrap_or(buffer.len().min(4096));
            if count == 0 {
                return Ok(());
            }
            self.take(count, &mut skipped)?;
        }
    }

    /// Moves over one value, into `out`; over nothing where none begins.
    fn value(&mut self, out: &mut Vec<u8>) -> Result<(), InputError> {
        let start = out.len();
        let (mut depth, mut string, mut escaped) = (0_usize, false, false);
        loop {
            let place = self.place;
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Err(cut("a value").at(place));
            }
            let mut end = None;
            for (index, &byte) in buffer.iter().enumerate() {
                if string {
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        b'"' => {
                            string = false;
                            if depth == 0 {
                                end = Some(index + 1);
                                break;
                            }
                        }
                        _ => {}
                    }
                    continue;
                }
                match byte {
                    b'"' if depth == 0 && (index > 0 || out.len() > start) => end = Some(index),
                    b'"' => string = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth > 1 => depth -= 1,
                    b'}' | b']' => end = Some(index + depth),
                    b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => end = Some(index),
                    _ => {}
                }
                if end.is_some() {
                    break;
                }
            }
            let count = end.unwrap_or(buffer.len());
            self.take(count, out)?;
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Reads the object that begins here. Of a list, only the frame is kept.
    fn document(&mut self, sink: &mut Sink<'_>) -> Result<(), InputError> {
        let mut whole = Text {
            start: self.place,
            bytes: Vec::new(),
        };
        match self.fields(sink, &mut whole) {
            Ok(items) => sink.document(whole, items),
            // A missing quote or bracket swallows the rest of the input: its place says more than the end's.
            Err(error) => Err(match whole.syntax() {
                Some(syntax) if self.peek().is_ok_and(|byte| byte.is_none()) => syntax,
                _ => whole.show(error),
            }),
        }
    }

    fn fields(&mut self, sink: &mut Sink<'_>, whole: &mut Text) -> Result<Option<Vec<Text>>, InputError> {
        let mut items = None;
        self.take(1, &mut whole.bytes)?;
        loop {
            self.white_into(&mut whole.bytes)?;
            match self.peek()? {
                None => return Err(cut("an object").at(self.place)),
                Some(b'}') => {
                    self.take(1, &mut whole.bytes)?;
                    return Ok(items);
                }
                Some(b',' | b':') => self.take(1, &mut whole.bytes)?,
                Some(_) => {
                    let key = whole.bytes.len();
                    self.value(&mut whole.bytes)?;
                    if whole.bytes.len() == key {
                        return Err(InputError::new("expected a field or the end of the object")
                            .at(self.place)
                            .with_hint(super::CORRECT));
                    }
                    if &whole.bytes[key..] != br#""items""# {
                        continue;
                    }
                    self.white_into(&mut whole.bytes)?;
                    if self.peek()? != Some(b':') {
                        continue;
                    }
                    self.take(1, &mut whole.bytes)?;
                    self.white_into(&mut whole.bytes)?;
                    if self.peek()? == Some(b'[') {
                        items.get_or_insert_default();
                        let around = whole.head_so_far();
                        self.items(sink, &around, items.get_or_insert_default())?;
                        whole.bytes.extend_from_slice(b"[]");
                    }
                }
            }
        }
    }

    /// Feeds the sink with the items of the list that begins here; `held` keeps those that must wait for its kind.
    fn items(&mut self, sink: &mut Sink<'_>, around: &Around, held: &mut Vec<Text>) -> Result<(), InputError> {
        let mut waiting = 0;
        self.take(1, &mut Vec::new())?;
        let mut first = true;
        loop {
            self.white()?;
            match (self.peek()?, first) {
                (None, _) => return Err(cut("a list").at(self.place)),
                (Some(b']'), _) => return self.take(1, &mut Vec::new()),
                (Some(b','), false) => {
                    self.take(1, &mut Vec::new())?;
                    self.white()?;
                }
                (Some(_), true) => {}
                (Some(byte), false) => {
                    return Err(InputError::new(format!("expected `,` or `]`, found {}", shown(byte)))
                        .at(self.place)
                        .with_hint(super::CORRECT));
                }
            }
            first = false;
            let mut item = Text {
                start: self.place,
                bytes: Vec::new(),
            };
            match self.value(&mut item.bytes) {
                Ok(()) if item.bytes.is_empty() => {
                    return Err(InputError::new("expected an item of the list")
                        .at(self.place)
                        .with_hint(super::CORRECT));
                }
                Ok(()) => {}
                Err(error) => return Err(item.syntax().unwrap_or_else(|| item.show(error))),
            }
            if let Some(item) = sink.item(item, around)? {
                waiting += item.bytes.len();
                if waiting > self.limits.object {
                    return Err(super::over("list whose items come before its kind", self.limits.object as u64)
                        .with_hint("put `kind` and `apiVersion` before `items`"));
                }
                held.push(item);
            }
        }
    }
}

fn cut(what: &str) -> InputError {
    InputError::new(format!("the input ends in the middle of {what}")).with_hint("the input is cut: capture it again")
}

/// The text of one value.
struct Text {
    start: Place,
    bytes: Vec<u8>,
}

impl Text {
    /// The text, whose encoding may be wrong.
    fn text(&self) -> Result<&str, InputError> {
        std::str::from_utf8(&self.bytes).map_err(|error| super::not_utf8(&self.bytes, error.valid_up_to(), self.start))
    }

    /// What is wrong with the grammar before the end, if anything.
    fn syntax(&self) -> Option<InputError> {
        let text = match self.text() {
            Ok(text) => text,
            Err(error) => return Some(error),
        };
        let error = serde_json::from_str::<IgnoredAny>(text).err()?;
        error.is_syntax().then(|| self.wrong(&error))
    }

    fn wrong(&self, error: &serde_json::Error) -> InputError {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        let wrong = InputError::new(format!("not JSON: {}", plain(message))).with_hint(super::CORRECT);
        self.show(wrong.at(self.start.plus(error.line() as u64, error.column() as u64)))
    }

    fn show(&self, error: InputError) -> InputError {
        error.showing(&String::from_utf8_lossy(&self.bytes), self.start)
    }

    /// What the fields before the value that begins now say.
    fn head_so_far(&self) -> Around {
        let mut text = self.bytes.clone();
        text.extend_from_slice(b"null}");
        serde_json::from_slice(&text).map_or(Around::Unknown, |head| Around::of(&head))
    }

    /// Reads the text again, slowly, to say which field has the wrong type. An object that only repeats a field
    /// loads: the last one counts, as for the API server.
    fn explain<'a, T>(
        &'a self,
        text: &'a str,
        error: &serde_json::Error,
        kind: Option<Kind>,
        load: impl FnOnce(&Node) -> Result<T, Mismatch>,
    ) -> Result<T, InputError> {
        if !error.is_data() {
            return Err(self.wrong(error));
        }
        let node = serde_json::from_str::<Value>(text)
            .map(Node::from)
            .map_err(|error| self.wrong(&error))?;
        load(&node).map_err(|mismatch| {
            let before = locate(text, &mismatch.steps).map_or("", |value| &text[..value.as_ptr().addr() - text.as_ptr().addr()]);
            self.show(super::wrong_type(&node, kind, &mismatch).at(self.start.after(before.as_bytes())))
        })
    }
}

/// The text of the value at the end of the steps.
fn locate<'a>(text: &'a str, steps: &[Step]) -> Option<&'a str> {
    let mut text = text;
    for step in steps.iter().rev() {
        let value: &RawValue = match step {
            Step::Field(name) => serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok()?.remove(name)?,
            Step::Index(index) => serde_json::from_str::<Vec<&RawValue>>(text).ok()?.get(*index).copied()?,
        };
        text = value.get();
    }
    Some(text)
}

impl Item for Text {
    fn part<T: DeserializeOwned>(&self) -> Result<T, InputError> {
        let text = self.text()?;
        serde_json::from_str(text).or_else(|error| self.explain(text, &error, None, |node| T::deserialize(node)))
    }

    fn load(self, kind: Kind, listings: &mut Listings) -> Result<(), InputError> {
        let text = self.text()?;
        match listings.insert(kind, &mut Deserializer::from_str(text)) {
            Ok(()) => Ok(()),
            Err(error) => self.explain(text, &error, Some(kind), |node| listings.insert(kind, node)),
        }
    }

    fn list(self, sink: &mut Sink<'_>) -> Result<(), InputError> {
        let limits = Limits {
            json: u64::MAX,
            ..Limits::DEFAULT
        };
        Scanner {
            reader: self.bytes.as_slice(),
            place: self.start,
            left: u64::MAX,
            limits,
        }
        .document(sink)
    }

    fn blame(&self, error: InputError) -> InputError {
        self.show(error.at(self.start))
    }
}
