//! Values that own their bytes, and results of lookups that borrow or own them.

use super::string_list::StringList;
use super::value::Value;
use std::fmt;
use std::sync::Arc;

/// A value that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type of the same name")]
#[non_exhaustive]
pub enum OwnedValue {
    Bytes(Vec<u8>),
    String(String),
    Bool(bool),
    I64(i64),
    F64(f64),
    I64List(Vec<i64>),
    F64List(Vec<f64>),
    F32List(Vec<f32>),
    StringList(OwnedStringList),
    EmptyList,
}

impl OwnedValue {
    /// Returns a borrowed view of the value.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::String(text) => Value::String(text),
            Self::Bool(truth) => Value::Bool(*truth),
            Self::I64(number) => Value::I64(*number),
            Self::F64(number) => Value::F64(*number),
            Self::I64List(list) => Value::I64List(list),
            Self::F64List(list) => Value::F64List(list),
            Self::F32List(list) => Value::F32List(list),
            Self::StringList(list) => Value::StringList(list.as_list()),
            Self::EmptyList => Value::EmptyList,
        }
    }
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::String(text) => Self::String(text.to_owned()),
            Value::Bool(truth) => Self::Bool(truth),
            Value::I64(number) => Self::I64(number),
            Value::F64(number) => Self::F64(number),
            Value::I64List(list) => Self::I64List(list.to_vec()),
            Value::F64List(list) => Self::F64List(list.to_vec()),
            Value::F32List(list) => Self::F32List(list.to_vec()),
            Value::StringList(list) => Self::StringList(list.into()),
            Value::EmptyList => Self::EmptyList,
        }
    }
}

/// A list of strings that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedStringList(Box<[u8]>);

impl OwnedStringList {
    /// Returns a borrowed view of the list.
    pub fn as_list(&self) -> StringList<'_> {
        StringList::from_checked(&self.0)
    }
}

impl From<StringList<'_>> for OwnedStringList {
    fn from(list: StringList<'_>) -> Self {
        Self(list.as_bytes().into())
    }
}

/// The value of a lookup: borrowed from the file, or owned because it was decompressed.
///
/// Values of files without compression are always borrowed.
#[derive(Clone)]
pub enum CowValue<'a> {
    /// A value in the file.
    Borrowed(Value<'a>),
    /// A decompressed value. The pointer keeps `CowValue` as small as [`Value`]; it is an `Arc` so
    /// that a clone does not copy the value.
    Owned(Arc<OwnedValue>),
}

impl CowValue<'_> {
    /// Returns a borrowed view of the value.
    #[inline]
    pub fn as_value(&self) -> Value<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.as_value(),
        }
    }

    /// Returns the value as one that owns its bytes. Copies a value that is borrowed from the file,
    /// or whose decompressed bytes have other references.
    pub fn into_owned(self) -> OwnedValue {
        match self {
            Self::Borrowed(value) => value.into(),
            Self::Owned(value) => Arc::unwrap_or_clone(value),
        }
    }
}

impl fmt::Debug for CowValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_value().fmt(f)
    }
}

impl PartialEq for CowValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_value() == other.as_value()
    }
}

impl PartialEq<Value<'_>> for CowValue<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        self.as_value() == *other
    }
}

impl<'a> From<Value<'a>> for CowValue<'a> {
    fn from(value: Value<'a>) -> Self {
        Self::Borrowed(value)
    }
}

/// The list of strings of a lookup: borrowed from the file, or owned because it was decompressed.
#[derive(Clone)]
pub enum CowStringList<'a> {
    /// A list in the file.
    Borrowed(StringList<'a>),
    /// A decompressed list.
    Owned(OwnedStringList),
}

impl CowStringList<'_> {
    /// Returns a borrowed view of the list.
    pub fn as_list(&self) -> StringList<'_> {
        match self {
            Self::Borrowed(list) => *list,
            Self::Owned(list) => list.as_list(),
        }
    }
}

impl fmt::Debug for CowStringList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_list().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_value_that_may_be_owned_takes_no_more_memory_than_a_borrowed_one() {
        assert_eq!(size_of::<CowValue<'_>>(), size_of::<Value<'_>>());
        assert_eq!(size_of::<Option<CowValue<'_>>>(), size_of::<Value<'_>>());
    }

    #[test]
    fn an_error_fits_in_two_registers() {
        assert_eq!(size_of::<Error>(), 16);
    }
}
