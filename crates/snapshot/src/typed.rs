//! Lookups that ask for a type.

use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::reader::{Quick, Snapshot};
use crate::stored::Stored;
use crate::string_list::StringList;
use crate::value::{Value, ValueType};

/// What a typed lookup can answer.
trait Typed<'a>: Sized {
    const TYPE: ValueType;

    /// The value, if it is of this type or reads as one.
    fn of(value: Value<'a>) -> Option<Self>;
}

macro_rules! typed {
    ($($ty:ty, $variant:ident $(, or $empty:expr)?;)*) => {$(
        impl<'a> Typed<'a> for $ty {
            const TYPE: ValueType = ValueType::$variant;

            #[inline(always)]
            fn of(value: Value<'a>) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(value),
                    $(Value::EmptyList => Some($empty),)?
                    _ => None,
                }
            }
        }
    )*};
}
typed! {
    &'a [u8], Bytes;
    &'a str, String;
    bool, Bool;
    i64, I64;
    f64, F64;
    &'a [i64], I64List, or &[];
    &'a [f64], F64List, or &[];
    &'a [f32], F32List, or &[];
    StringList<'a>, StringList, or StringList::default();
}

/// Typed lookups. `None` for a missing key; [`Error::WrongType`] for a value of another type, which
/// is never converted. A list without elements reads as a list of any type.
impl Snapshot {
    /// The bytes of a key.
    #[inline(always)]
    pub fn get_bytes(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.get_typed(key)
    }

    /// The string of a key.
    #[inline(always)]
    pub fn get_string(&self, key: &[u8]) -> Result<Option<&str>> {
        self.get_typed(key)
    }

    /// The truth value of a key.
    #[inline(always)]
    pub fn get_bool(&self, key: &[u8]) -> Result<Option<bool>> {
        self.get_typed(key)
    }

    /// The integer of a key.
    #[inline(always)]
    pub fn get_i64(&self, key: &[u8]) -> Result<Option<i64>> {
        self.get_typed(key)
    }

    /// The float of a key.
    #[inline(always)]
    pub fn get_f64(&self, key: &[u8]) -> Result<Option<f64>> {
        self.get_typed(key)
    }

    /// The list of integers of a key, in place.
    #[inline(always)]
    pub fn get_i64_list(&self, key: &[u8]) -> Result<Option<&[i64]>> {
        self.get_typed(key)
    }

    /// The list of 64-bit floats of a key, in place.
    #[inline(always)]
    pub fn get_f64_list(&self, key: &[u8]) -> Result<Option<&[f64]>> {
        self.get_typed(key)
    }

    /// The list of 32-bit floats of a key, in place.
    #[inline(always)]
    pub fn get_f32_list(&self, key: &[u8]) -> Result<Option<&[f32]>> {
        self.get_typed(key)
    }

    /// The list of strings of a key, in place.
    #[inline(always)]
    pub fn get_string_list(&self, key: &[u8]) -> Result<Option<StringList<'_>>> {
        self.get_typed(key)
    }

    #[inline(always)]
    fn get_typed<'a, T: Typed<'a>>(&'a self, key: &[u8]) -> Result<Option<T>> {
        // One comparison finds key length and type right at once; all else goes the long way.
        let hash = KeyHash::of(key, self.header.seed);
        match self.quick_find(key, hash, Some(T::TYPE.code())) {
            Quick::Found(_, value) => {
                Ok(T::of(Stored::plain(self, T::TYPE, value).value_of(T::TYPE)?))
            }
            Quick::Absent => Ok(None),
            Quick::Unsure => self.find_typed(key),
        }
    }

    #[inline(never)]
    fn find_typed<'a, T: Typed<'a>>(&'a self, key: &[u8]) -> Result<Option<T>> {
        let Some(stored) = self.find(key)? else { return Ok(None) };
        let found = stored.value_type();
        if found != T::TYPE && found != ValueType::EmptyList {
            return Err(Error::WrongType { asked: T::TYPE, found });
        }
        match T::of(stored.value()?) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::WrongType { asked: T::TYPE, found }),
        }
    }
}
