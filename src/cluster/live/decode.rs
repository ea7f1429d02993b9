//! JSON bodies, taken as they arrive.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Fault;
use crate::cluster::connect::shown;
use crate::cluster::kinds::{Kind, Listings, first};

/// Bytes of one object. etcd takes 1.5 MB by default; nobody runs it with ten times that.
const MAX_OBJECT: usize = 16 << 20;

/// Bytes of an answer that is not a list, of which the rest is of no use.
pub(super) const MAX_DOCUMENT: usize = 1 << 20;

/// Bytes that are gathered before an object that was not whole is tried again.
pub(super) const STEP: usize = 64 << 10;

/// Takes a JSON body as it arrives.
pub(super) trait Receiver {
    type Output;

    /// Takes the next bytes. The error says what is wrong with them.
    fn take(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// The body is over.
    fn finish(self) -> Result<Self::Output, Fault>;
}

/// A small document.
pub(super) struct Document<T> {
    text: Vec<u8>,
    output: std::marker::PhantomData<T>,
}

impl<T> Default for Document<T> {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            output: std::marker::PhantomData,
        }
    }
}

impl<T: for<'de> Deserialize<'de>> Receiver for Document<T> {
    type Output = T;

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.text.extend_from_slice(bytes);
        if self.text.len() > MAX_DOCUMENT {
            Err("its answer is too long".to_owned())
        } else {
            Ok(())
        }
    }

    fn finish(self) -> Result<T, Fault> {
        serde_json::from_slice(&self.text).map_err(|error| {
            if error.is_eof() {
                Fault::Cut(error.to_string())
            } else {
                Fault::Garbage(format!("its answer cannot be read: {error}"))
            }
        })
    }
}

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) objects: Listings,
    pub(super) count: usize,
    /// Where the next page begins; `None` on the last.
    pub(super) token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMeta {
    r#continue: Option<String>,
}

/// Takes a page apart, member by member and object by object, and keeps no more text than what is not whole yet.
pub(super) struct ListDecoder {
    kind: Kind,
    page: Page,
    pub(super) text: Vec<u8>,
    /// How much text there must be before it is worth another look.
    pub(super) wanted: usize,
    place: Place,
    named: bool,
    listed: bool,
}

/// Where in the list the text goes on.
enum Place {
    /// Before its opening brace.
    Start,
    /// Before a member, a comma or the closing brace.
    Member,
    /// Before the colon after a member's name.
    Colon(String),
    /// Before a member's value.
    Value(String),
    /// Before an object, a comma or the closing bracket.
    Items,
    /// After its closing brace.
    End,
}

impl ListDecoder {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            page: Page {
                objects: Listings::default(),
                count: 0,
                token: None,
            },
            text: Vec::new(),
            wanted: 0,
            place: Place::Start,
            named: false,
            listed: false,
        }
    }

    /// Goes on as far as the text allows, and gives how much of it is done with.
    fn advance(&mut self) -> Result<usize, String> {
        fn broken(error: serde_json::Error) -> String {
            format!("the list is not as it should be: {error}")
        }
        let buffer = std::mem::take(&mut self.text);
        // A number at the end may go on, and one that stops at its point or sign is an error to the parser; no list
        // ends with one.
        let number = buffer
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte))
            .count();
        let text = &buffer[..buffer.len() - number];
        let mut at = 0;
        let outcome = loop {
            at += text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let rest = &text[at..];
            let Some(&byte) = rest.first() else { break Ok(at) };
            match (&mut self.place, byte) {
                (Place::Start, b'{') => {
                    self.place = Place::Member;
                    at += 1;
                }
                (Place::Member, b'}') => {
                    self.place = Place::End;
                    at += 1;
                }
                (Place::Member | Place::Items, b',') => at += 1,
                (Place::Member, b'"') => match first(rest) {
                    Ok(Some((name, length))) => {
                        self.place = Place::Colon(name);
                        at += length;
                    }
                    Ok(None) => break Ok(at),
                    Err(error) => break Err(broken(error)),
                },
                (Place::Colon(name), b':') => {
                    self.place = Place::Value(std::mem::take(name));
                    at += 1;
                }
                (Place::Value(name), b'[') if name == "items" => {
                    if self.listed {
                        break Err("the list has its items twice".to_owned());
                    }
                    self.listed = true;
                    self.place = Place::Items;
                    at += 1;
                }
                (Place::Value(name), _) => {
                    let length = match name.as_str() {
                        // An empty list of Go may be null.
                        "items" => first::<()>(rest).map(|value| {
                            self.listed |= value.is_some();
                            value.map(|((), length)| length)
                        }),
                        "metadata" => first::<Option<ListMeta>>(rest).map(|value| {
                            value.map(|(meta, length)| {
                                self.page.token = meta.and_then(|meta| meta.r#continue).filter(|token| !token.is_empty());
                                length
                            })
                        }),
                        "kind" => match first::<String>(rest) {
                            Ok(Some((kind, length))) => {
                                let expected = format!("{}List", self.kind.info().kind);
                                if kind != expected {
                                    break Err(format!("the server sends a {} instead of a {expected}", shown(&kind)));
                                }
                                self.named = true;
                                Ok(Some(length))
                            }
                            Ok(None) => Ok(None),
                            Err(error) => Err(error),
                        },
                        _ => first::<IgnoredAny>(rest).map(|value| value.map(|(_, length)| length)),
                    };
                    match length {
                        Ok(Some(length)) => {
                            self.place = Place::Member;
                            at += length;
                        }
                        Ok(None) => break Ok(at),
                        Err(error) => break Err(broken(error)),
                    }
                }
                (Place::Items, b']') => {
                    self.place = Place::Member;
                    at += 1;
                }
                (Place::Items, _) => match self.page.objects.insert_first(self.kind, rest) {
                    Ok(Some(length)) => {
                        self.page.count += 1;
                        at += length;
                    }
                    Ok(None) => break Ok(at),
                    Err(error) => break Err(format!("object {} of a page cannot be read: {error}", self.page.count + 1)),
                },
                (Place::Start | Place::Member | Place::Colon(_) | Place::End, _) => {
                    break Err("the server sends something that is not a JSON list".to_owned());
                }
            }
        };
        self.text = buffer;
        outcome
    }
}

impl Receiver for ListDecoder {
    type Output = Page;

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.text.extend_from_slice(bytes);
        if self.text.len() < self.wanted {
            return Ok(());
        }
        let done = self.advance()?;
        self.text.drain(..done);
        if self.text.len() > MAX_OBJECT {
            return Err(format!(
                "object {} of a page is larger than {} MiB",
                self.page.count + 1,
                MAX_OBJECT >> 20
            ));
        }
        // Twice as much each time, so that a large object is not begun over and over.
        self.wanted = self.text.len() + self.text.len().max(STEP);
        Ok(())
    }

    fn finish(mut self) -> Result<Page, Fault> {
        let done = self.advance().map_err(Fault::Garbage)?;
        if !matches!(self.place, Place::End) {
            return Err(Fault::Cut(format!(
                "the list ends after {} objects of a page, {} bytes into the next",
                self.page.count,
                self.text.len() - done
            )));
        }
        if !self.listed || !self.named {
            return Err(Fault::Garbage(format!(
                "the server sends an object that is not a {}List",
                self.kind.info().kind
            )));
        }
        Ok(self.page)
    }
}
