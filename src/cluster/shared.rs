//! Values that many objects have in common, held once.
//!
//! The pods of a large cluster differ in their names and places, hardly in what they ask for. What was read before is
//! recognised by its text, before anything is made of it, or by its value.

use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::thread::LocalKey;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Bytes of text by which values of one type are recognised. What is alike stands close together in a list.
const TEXTS: usize = 1 << 20;

thread_local! {
    /// Whether what is deserialized is JSON text in memory.
    static TEXT: Cell<bool> = const { Cell::new(false) };
}

/// Deserializes from JSON text in memory, of which parts are recognised.
pub fn from_text<R>(read: impl FnOnce() -> R) -> R {
    let before = TEXT.replace(true);
    let result = read();
    TEXT.set(before);
    result
}

/// A value that others may hold too. The zero value takes no room. To change it makes a copy where others hold it.
pub struct Shared<T>(Option<Arc<T>>);

/// A type of which equal values are held once.
pub trait Pooled: Clone + Default + Eq + Hash + 'static {
    /// The zero value.
    fn zero() -> &'static Self;

    /// The values that this thread knows.
    fn pool() -> &'static LocalKey<RefCell<Pool<Self>>>;
}

/// Values that are known.
pub struct Pool<T> {
    texts: HashMap<Box<str>, Shared<T>>,
    held: usize,
    values: HashSet<Arc<T>>,
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} values", self.values.len())
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self {
            texts: HashMap::new(),
            held: 0,
            values: HashSet::new(),
        }
    }
}

/// Lets equal values of these types be held once.
#[macro_export]
macro_rules! pooled {
    ($($name:ty),* $(,)?) => {$(
        impl $crate::cluster::shared::Pooled for $name {
            fn zero() -> &'static Self {
                static ZERO: std::sync::LazyLock<$name> = std::sync::LazyLock::new(Default::default);
                &ZERO
            }

            fn pool() -> &'static std::thread::LocalKey<std::cell::RefCell<$crate::cluster::shared::Pool<Self>>> {
                thread_local! {
                    static POOL: std::cell::RefCell<$crate::cluster::shared::Pool<$name>> = Default::default();
                }
                &POOL
            }
        }
    )*};
}

impl<T: Pooled> Shared<T> {
    /// The value, held together with those that equal it.
    pub fn new(value: T) -> Self {
        if value == *T::zero() {
            return Self(None);
        }
        T::pool().with_borrow_mut(|pool| {
            if let Some(known) = pool.values.get(&value) {
                return Self(Some(known.clone()));
            }
            let value = Arc::new(value);
            pool.values.insert(value.clone());
            Self(Some(value))
        })
    }

    /// The value, told by its place in memory from all others.
    pub fn alone(value: T) -> Self {
        Self(Some(Arc::new(value)))
    }

    /// What the text was before.
    fn known(text: &str) -> Option<Self> {
        T::pool().with_borrow(|pool| pool.texts.get(text).cloned())
    }

    fn remember(&self, text: &str) {
        T::pool().with_borrow_mut(|pool| {
            if pool.held > TEXTS {
                pool.texts.clear();
                pool.held = 0;
            }
            pool.held += text.len();
            pool.texts.insert(text.into(), self.clone());
        });
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pooled> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::zero())
    }
}

impl<T: Pooled> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl<T: Pooled> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Pooled + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl<T: Pooled> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(another)) if Arc::ptr_eq(one, another) => true,
            _ => **self == **other,
        }
    }
}

impl<T: Pooled> Eq for Shared<T> {}

impl<T: Pooled + PartialOrd> PartialOrd for Shared<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: Pooled + Ord> Ord for Shared<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Pooled> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: Pooled> Borrow<T> for Shared<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl PartialEq<str> for Shared<String> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Shared<String> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl<'a, T: Pooled> IntoIterator for &'a Shared<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (**self).into_iter()
    }
}

impl<T: Pooled + Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Pooled + DeserializeOwned> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !TEXT.get() {
            return T::deserialize(deserializer).map(Self::new);
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if let Some(known) = Self::known(text) {
            return Ok(known);
        }
        let value = serde_json::from_str(text).map(Self::new).map_err(D::Error::custom)?;
        value.remember(text);
        Ok(value)
    }
}
