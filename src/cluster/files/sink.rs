//! Where the objects of an input go, whatever its format.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::error::{InputError, plain};
use super::saved;
use crate::cluster::kinds::{Kind, Listings};

/// What a document must have.
pub(super) const EVERY_DOCUMENT: &str = "every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them";

/// Lists inside lists beyond which nothing that was meant to be read is.
const NESTED_LISTS: u32 = 8;

/// What tells an object's kind; `null` is as good as absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Head {
    api_version: Option<String>,
    kind: Option<String>,
}

impl Head {
    fn api_version(&self) -> &str {
        self.api_version.as_deref().unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }
}

/// What tells whether a list is whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListFrame {
    metadata: Option<ListMeta>,
    items: Option<Vec<IgnoredAny>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// An object as text or as a parsed value.
pub(super) trait Item: Sized {
    /// Reads a part of it.
    fn part<T: DeserializeOwned>(&self) -> Result<T, InputError>;

    /// Adds it to the listing of its kind.
    fn load(self, kind: Kind, listings: &mut Listings) -> Result<(), InputError>;

    /// Feeds the sink with the list that it is.
    fn list(self, sink: &mut Sink<'_>) -> Result<(), InputError>;

    /// Puts its place on an error about it.
    fn blame(&self, error: InputError) -> InputError;
}

/// What is known of the list around an item.
#[derive(Clone, Debug)]
pub(super) enum Around {
    /// No list, or one whose items say what they are.
    Nothing,
    /// A list of one kind, whose items need not say it.
    Typed(Head),
    /// The list has not said yet what it is.
    Unknown,
}

impl Around {
    /// What a list's head, as far as it was read, says of its items.
    pub(super) fn of(head: &Head) -> Self {
        match head.kind().strip_suffix("List") {
            _ if head.kind().is_empty() || head.api_version().is_empty() => Self::Unknown,
            Some(kind) if !kind.is_empty() => Self::Typed(Head {
                api_version: head.api_version.clone(),
                kind: Some(kind.to_owned()),
            }),
            _ => Self::Nothing,
        }
    }
}

/// What an object turned out to be.
enum Class {
    Known(Kind),
    List(Option<Kind>),
    Snapshot,
    Other,
}

fn classify(head: &Head) -> Result<Class, InputError> {
    let (api_version, kind) = (head.api_version(), head.kind());
    let what = match (api_version, kind) {
        ("", "") => Some("no apiVersion and no kind: not a Kubernetes object".to_owned()),
        (_, "") => Some("no kind: not a Kubernetes object".to_owned()),
        ("", _) => Some(format!("{} without apiVersion", plain(kind))),
        _ => None,
    };
    if let Some(what) = what {
        return Err(InputError::new(what).with_hint(EVERY_DOCUMENT));
    }
    if kind == "Status" && api_version == "v1" {
        return Err(InputError::new("an API server's error (kind Status) in place of objects").with_hint("capture the objects again"));
    }
    Ok(match (Kind::of(api_version, kind), kind.strip_suffix("List")) {
        (Some(known), _) => Class::Known(known),
        _ if saved::is_one(api_version, kind) => Class::Snapshot,
        (None, Some("")) if api_version == "v1" => Class::List(None),
        (None, Some(item)) if Kind::of(api_version, item).is_some() => Class::List(Kind::of(api_version, item)),
        _ => Class::Other,
    })
}

/// Two snapshots in one question.
pub(super) fn two_snapshots() -> InputError {
    InputError::new("a second snapshot: what was read, and when, is told by one")
        .with_hint("give one snapshot; other files may stand beside it")
}

/// What an input held.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Documents that are not empty.
    pub(super) documents: u32,
    /// Objects of known kinds.
    pub(super) known: usize,
    /// Objects of other kinds.
    pub(super) others: BTreeMap<String, usize>,
    /// Kinds that an object or a typed list stated, even an empty one.
    pub(super) stated: BTreeSet<Kind>,
    /// Those of which a typed list was given.
    pub(super) lists: BTreeSet<Kind>,
    /// What a snapshot says of its objects.
    pub(super) saved: Option<saved::Frame>,
}

/// Takes objects in.
pub(super) struct Sink<'a> {
    pub(super) listings: &'a mut Listings,
    pub(super) tally: Tally,
    nesting: u32,
    /// Kinds of the objects of the present document.
    loaded: BTreeSet<Kind>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(listings: &'a mut Listings) -> Self {
        Self {
            listings,
            tally: Tally::default(),
            nesting: 0,
            loaded: BTreeSet::new(),
        }
    }

    /// Takes a whole document; `items` are those of a list's items that were held back, if it had a list of items.
    pub(super) fn document<I: Item>(&mut self, document: I, items: Option<Vec<I>>) -> Result<(), InputError> {
        self.whole(document, items)?;
        if self.nesting == 0 {
            self.tally.stated.append(&mut self.loaded);
        }
        Ok(())
    }

    fn whole<I: Item>(&mut self, document: I, items: Option<Vec<I>>) -> Result<(), InputError> {
        let head: Head = document.part()?;
        match classify(&head).map_err(|error| document.blame(error))? {
            Class::Known(kind) => {
                self.tally.known += 1;
                self.loaded.insert(kind);
                document.load(kind, self.listings)
            }
            Class::Snapshot => {
                let frame: saved::Frame = document.part()?;
                frame.known().map_err(|error| document.blame(error))?;
                if self.tally.saved.is_some() {
                    return Err(document.blame(two_snapshots()));
                }
                self.tally.saved = Some(frame);
                items
                    .into_iter()
                    .flatten()
                    .try_for_each(|item| self.item(item, &Around::Nothing).map(|_| ()))?;
                self.loaded.clear();
                Ok(())
            }
            Class::Other => {
                *self.tally.others.entry(head.kind().to_owned()).or_default() += 1;
                Ok(())
            }
            Class::List(kind) => {
                let frame: ListFrame = document.part()?;
                if frame
                    .metadata
                    .and_then(|metadata| metadata.next)
                    .is_some_and(|next| !next.is_empty())
                {
                    let error = InputError::new(format!(
                        "this {} is one page of a longer list (metadata.continue is set)",
                        plain(head.kind())
                    ));
                    return Err(document.blame(error.with_hint("capture the whole list, without a limit")));
                }
                // The name of the field may be written with escapes, which JSON's scanner does not look through.
                if frame.items.is_some_and(|items| !items.is_empty()) {
                    return Err(document
                        .blame(InputError::new("a list whose items were not found").with_hint("write `items` without escapes, and once")));
                }
                if let (Some(kind), Some(_)) = (kind, &items) {
                    self.tally.stated.insert(kind);
                    self.tally.lists.insert(kind);
                }
                let around = match Around::of(&head) {
                    Around::Unknown => Around::Nothing,
                    around => around,
                };
                items
                    .into_iter()
                    .flatten()
                    .try_for_each(|item| self.item(item, &around).map(|_| ()))
            }
        }
    }

    /// Takes an item of a list. Gives it back where the list must first say what it is.
    pub(super) fn item<I: Item>(&mut self, item: I, around: &Around) -> Result<Option<I>, InputError> {
        let mut head: Head = item.part()?;
        if head.kind().is_empty() && head.api_version().is_empty() {
            match around {
                Around::Unknown => return Ok(Some(item)),
                Around::Typed(typed) => head = typed.clone(),
                Around::Nothing => {}
            }
        }
        match classify(&head).map_err(|error| item.blame(error))? {
            Class::Known(kind) => {
                self.tally.known += 1;
                self.loaded.insert(kind);
                item.load(kind, self.listings)?;
            }
            Class::Other => *self.tally.others.entry(head.kind().to_owned()).or_default() += 1,
            Class::Snapshot => return Err(item.blame(InputError::new("a snapshot within a list"))),
            Class::List(_) if self.nesting == NESTED_LISTS => {
                return Err(item.blame(InputError::new(format!("lists nested more than {NESTED_LISTS} deep"))));
            }
            Class::List(_) => {
                self.nesting += 1;
                item.list(self)?;
                self.nesting -= 1;
            }
        }
        Ok(None)
    }
}
