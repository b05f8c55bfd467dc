//! Value types and borrowed values.

use super::cast;
use super::string_list::StringList;
use std::fmt;

/// The type of a stored value. The discriminant is the type code in the file. Later versions can
/// add types; opening a file with a type that this version does not know fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum ValueType {
    /// Arbitrary bytes.
    Bytes = 1,
    /// UTF-8 text.
    String = 2,
    /// True or false.
    Bool = 3,
    /// A signed 64-bit integer.
    I64 = 4,
    /// A 64-bit float.
    F64 = 5,
    /// A non-empty list of signed 64-bit integers.
    I64List = 6,
    /// A non-empty list of 64-bit floats.
    F64List = 7,
    /// A non-empty list of 32-bit floats.
    F32List = 8,
    /// A non-empty list of UTF-8 strings.
    StringList = 9,
    /// A list without elements. Lookups of any list type return it as an empty list.
    EmptyList = 10,
}

impl ValueType {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Bytes,
        Self::String,
        Self::Bool,
        Self::I64,
        Self::F64,
        Self::I64List,
        Self::F64List,
        Self::F32List,
        Self::StringList,
        Self::EmptyList,
    ];

    /// Returns the type with this code, or `None` for an unknown code.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Bytes,
            2 => Self::String,
            3 => Self::Bool,
            4 => Self::I64,
            5 => Self::F64,
            6 => Self::I64List,
            7 => Self::F64List,
            8 => Self::F32List,
            9 => Self::StringList,
            10 => Self::EmptyList,
            _ => return None,
        })
    }

    /// Returns the type code that files store.
    #[inline]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns whether the code is that of a non-empty list.
    #[inline(always)]
    pub(crate) fn is_list_code(code: u8) -> bool {
        (Self::I64List.code()..=Self::StringList.code()).contains(&code)
    }

    /// Returns the name of the type, such as `string` or `list of i64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::I64List => "list of i64",
            Self::F64List => "list of f64",
            Self::F32List => "list of f32",
            Self::StringList => "list of string",
            Self::EmptyList => "empty list",
        }
    }

    /// Returns the alignment of an uncompressed stored value of this type, in bytes.
    #[inline]
    pub(crate) fn align(self) -> usize {
        match self {
            Self::Bytes | Self::String | Self::Bool | Self::EmptyList => 1,
            Self::F32List | Self::StringList => 4,
            Self::I64 | Self::F64 | Self::I64List | Self::F64List => 8,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A borrowed value: the writer's input, and a lookup's result that borrows from the file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type of the same name")]
#[non_exhaustive]
pub enum Value<'a> {
    Bytes(&'a [u8]),
    String(&'a str),
    Bool(bool),
    I64(i64),
    F64(f64),
    I64List(&'a [i64]),
    F64List(&'a [f64]),
    F32List(&'a [f32]),
    StringList(StringList<'a>),
    EmptyList,
}

impl<'a> Value<'a> {
    /// Returns the type this value is stored as. Every list without elements is an [`EmptyList`].
    ///
    /// [`EmptyList`]: ValueType::EmptyList
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Bytes(_) => ValueType::Bytes,
            Self::String(_) => ValueType::String,
            Self::Bool(_) => ValueType::Bool,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
            Self::I64List([]) | Self::F64List([]) | Self::F32List([]) | Self::EmptyList => {
                ValueType::EmptyList
            }
            Self::StringList(list) if list.is_empty() => ValueType::EmptyList,
            Self::I64List(_) => ValueType::I64List,
            Self::F64List(_) => ValueType::F64List,
            Self::F32List(_) => ValueType::F32List,
            Self::StringList(_) => ValueType::StringList,
        }
    }

    /// Calls `f` with the stored bytes of this value.
    pub(crate) fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match *self {
            Self::Bytes(bytes) => f(bytes),
            Self::String(text) => f(text.as_bytes()),
            Self::Bool(truth) => f(&[u8::from(truth)]),
            Self::I64(number) => f(&number.to_le_bytes()),
            Self::F64(number) => f(&number.to_le_bytes()),
            Self::I64List(list) => f(cast::to_bytes(list)),
            Self::F64List(list) => f(cast::to_bytes(list)),
            Self::F32List(list) => f(cast::to_bytes(list)),
            Self::StringList(list) if !list.is_empty() => f(list.as_bytes()),
            Self::StringList(_) | Self::EmptyList => f(&[]),
        }
    }

    /// Decodes stored bytes of a type code without any call. Returns `None` if that needs one, or
    /// if the bytes are invalid.
    #[inline(always)]
    pub(crate) fn usual(code: u8, bytes: &'a [u8]) -> Option<Self> {
        match ValueType::from_code(code)? {
            ValueType::String => cast::to_short_ascii(bytes).map(Self::String),
            ValueType::StringList => None,
            value_type => Self::from_bytes(value_type, bytes).ok(),
        }
    }

    /// Decodes stored bytes of a type.
    ///
    /// # Errors
    /// Returns [`InvalidValue`] if the bytes are not a value of this type.
    #[inline(always)]
    pub(crate) fn from_bytes(value_type: ValueType, bytes: &'a [u8]) -> Result<Self, InvalidValue> {
        Ok(match value_type {
            ValueType::Bytes => Self::Bytes(bytes),
            ValueType::String => Self::String(cast::to_text(bytes).ok_or(InvalidValue::Utf8)?),
            ValueType::Bool => match bytes {
                [0] => Self::Bool(false),
                [1] => Self::Bool(true),
                _ => return Err(InvalidValue::Bool),
            },
            ValueType::I64 => {
                Self::I64(i64::from_le_bytes(bytes.try_into().map_err(|_| InvalidValue::Number)?))
            }
            ValueType::F64 => {
                Self::F64(f64::from_le_bytes(bytes.try_into().map_err(|_| InvalidValue::Number)?))
            }
            ValueType::I64List => Self::I64List(cast::to_numbers(bytes).ok_or(InvalidValue::List)?),
            ValueType::F64List => Self::F64List(cast::to_numbers(bytes).ok_or(InvalidValue::List)?),
            ValueType::F32List => Self::F32List(cast::to_numbers(bytes).ok_or(InvalidValue::List)?),
            ValueType::StringList => {
                Self::StringList(StringList::from_bytes(bytes).ok_or(InvalidValue::StringList)?)
            }
            ValueType::EmptyList if bytes.is_empty() => Self::EmptyList,
            ValueType::EmptyList => return Err(InvalidValue::List),
        })
    }
}

/// Why stored bytes are not a value of their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidValue {
    Utf8,
    Bool,
    Number,
    List,
    StringList,
}

impl InvalidValue {
    /// Returns what the format requires.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Utf8 => "a string in UTF-8",
            Self::Bool => "a bool of one byte, 0 or 1",
            Self::Number => "a number of 8 bytes",
            Self::List => "an aligned list of whole elements",
            Self::StringList => "a list of strings with ends in order and text in UTF-8",
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl<'a> From<$from> for Value<'a> {
            fn from(value: $from) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}
value_from! {
    &'a [u8] => Bytes, &'a str => String, bool => Bool, i64 => I64, f64 => F64,
    &'a [i64] => I64List, &'a [f64] => F64List, &'a [f32] => F32List,
    StringList<'a> => StringList,
}
