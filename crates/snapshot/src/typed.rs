//! Lookups that ask for a type.

use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::owned::{CowStringList, CowValue, OwnedValue};
use crate::reader::{Quick, Snapshot};
use crate::string_list::StringList;
use crate::value::{Value, ValueType};
use std::borrow::Cow;
use std::sync::Arc;

/// What a typed lookup returns.
trait Typed<'a>: Sized {
    const TYPE: ValueType;

    /// Returns the value, if it is of this type or reads as one.
    fn of(value: Value<'a>) -> Option<Self>;

    /// As [`of`](Self::of), for a value that was decompressed.
    fn of_owned(value: OwnedValue) -> Option<Self>;
}

macro_rules! typed {
    ($($ty:ty, $variant:ident, $borrowed:expr, $owned:expr $(, or $empty:expr)?;)*) => {$(
        impl<'a> Typed<'a> for $ty {
            const TYPE: ValueType = ValueType::$variant;

            #[inline(always)]
            fn of(value: Value<'a>) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some($borrowed(value)),
                    $(Value::EmptyList => Some($borrowed($empty)),)?
                    _ => None,
                }
            }

            fn of_owned(value: OwnedValue) -> Option<Self> {
                match value {
                    OwnedValue::$variant(value) => Some($owned(value)),
                    $(OwnedValue::EmptyList => Some($borrowed($empty)),)?
                    _ => None,
                }
            }
        }
    )*};
}
typed! {
    Cow<'a, [u8]>, Bytes, Cow::Borrowed, Cow::Owned;
    Cow<'a, str>, String, Cow::Borrowed, Cow::Owned;
    bool, Bool, bool::from, bool::from;
    i64, I64, i64::from, i64::from;
    f64, F64, f64::from, f64::from;
    Cow<'a, [i64]>, I64List, Cow::Borrowed, Cow::Owned, or &[];
    Cow<'a, [f64]>, F64List, Cow::Borrowed, Cow::Owned, or &[];
    Cow<'a, [f32]>, F32List, Cow::Borrowed, Cow::Owned, or &[];
    CowStringList<'a>, StringList, CowStringList::Borrowed, CowStringList::Owned,
        or StringList::default();
}

/// Typed lookups. `None` for a missing key; [`Error::WrongType`] for a value of another type, which
/// is never converted. A list without elements reads as a list of any type.
///
/// What is returned is borrowed from the file, or owned if the value is compressed; [`get`] says
/// what that costs.
///
/// [`get`]: Snapshot::get
impl Snapshot {
    /// Returns the bytes of a key.
    #[inline(always)]
    pub fn get_bytes(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        self.get_typed(key)
    }

    /// Returns the string of a key.
    #[inline(always)]
    pub fn get_string(&self, key: &[u8]) -> Result<Option<Cow<'_, str>>> {
        self.get_typed(key)
    }

    /// Returns the boolean of a key.
    #[inline(always)]
    pub fn get_bool(&self, key: &[u8]) -> Result<Option<bool>> {
        self.get_typed(key)
    }

    /// Returns the integer of a key.
    #[inline(always)]
    pub fn get_i64(&self, key: &[u8]) -> Result<Option<i64>> {
        self.get_typed(key)
    }

    /// Returns the float of a key.
    #[inline(always)]
    pub fn get_f64(&self, key: &[u8]) -> Result<Option<f64>> {
        self.get_typed(key)
    }

    /// Returns the list of integers of a key.
    #[inline(always)]
    pub fn get_i64_list(&self, key: &[u8]) -> Result<Option<Cow<'_, [i64]>>> {
        self.get_typed(key)
    }

    /// Returns the list of 64-bit floats of a key.
    #[inline(always)]
    pub fn get_f64_list(&self, key: &[u8]) -> Result<Option<Cow<'_, [f64]>>> {
        self.get_typed(key)
    }

    /// Returns the list of 32-bit floats of a key.
    #[inline(always)]
    pub fn get_f32_list(&self, key: &[u8]) -> Result<Option<Cow<'_, [f32]>>> {
        self.get_typed(key)
    }

    /// Returns the list of strings of a key.
    #[inline(always)]
    pub fn get_string_list(&self, key: &[u8]) -> Result<Option<CowStringList<'_>>> {
        self.get_typed(key)
    }

    #[inline(always)]
    fn get_typed<'a, T: Typed<'a>>(&'a self, key: &[u8]) -> Result<Option<T>> {
        // One comparison checks the length of the key and the type. Any other case, compressed and
        // damaged values included, takes the slow path.
        let hash = KeyHash::of(key, self.header.seed);
        let found = match self.quick_find(key, hash, Some(T::TYPE.code())) {
            Quick::Found(_, bytes) => Value::from_bytes(T::TYPE, bytes).ok(),
            Quick::Absent => return Ok(None),
            Quick::Unsure => None,
        };
        let value = match found {
            Some(value) => T::of(value),
            None => self.find_typed(key)?,
        };
        Ok(value)
    }

    #[inline(never)]
    fn find_typed<'a, T: Typed<'a>>(&'a self, key: &[u8]) -> Result<Option<T>> {
        let Some(stored) = self.find(key)? else { return Ok(None) };
        let found = stored.value_type();
        if found != T::TYPE && found != ValueType::EmptyList {
            return Err(Error::WrongType { asked: T::TYPE, found });
        }
        let value = match stored.value()? {
            CowValue::Borrowed(value) => T::of(value),
            CowValue::Owned(value) => T::of_owned(Arc::unwrap_or_clone(value)),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(Error::WrongType { asked: T::TYPE, found }),
        }
    }
}
