//! Lookups of values of a known type.

use super::file::SnapshotFile;
use super::lookup::FastResult;
use super::snapshot::Snapshot;
use crate::error::{Error, Result};
use crate::format::hash::KeyHash;
use crate::values::{CowStringList, CowValue, OwnedValue, StringList, Value, ValueType};
use std::borrow::Cow;
use std::sync::Arc;

/// The result type of a typed lookup.
trait Typed<'a>: Sized {
    const TYPE: ValueType;

    /// Returns the value, or `None` if it has another type. An empty list has every list type.
    fn of(value: Value<'a>) -> Option<Self>;

    /// Returns a decompressed value, as [`of`](Self::of).
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

/// # Typed lookups
///
/// These return `None` for a missing key. Values are never converted: a value of another type is
/// [`Error::WrongType`]. An empty list can be read as a list of any type. Results borrow from the
/// file; they are owned if the value is compressed, at the cost that [`get`](Self::get) describes.
///
/// # Errors
/// Typed lookups return [`Error::WrongType`] or an error of [`get`](Self::get).
impl Snapshot {
    /// Returns a value of type bytes.
    ///
    /// # Errors
    /// Returns [`Error::WrongType`] for a value of another type, or an error of
    /// [`get`](Self::get).
    #[inline(always)]
    pub fn get_bytes(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        self.get_typed(key)
    }

    /// Returns a string.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_string(&self, key: &[u8]) -> Result<Option<Cow<'_, str>>> {
        self.get_typed(key)
    }

    /// Returns a boolean.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_bool(&self, key: &[u8]) -> Result<Option<bool>> {
        self.get_typed(key)
    }

    /// Returns an integer.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_i64(&self, key: &[u8]) -> Result<Option<i64>> {
        self.get_typed(key)
    }

    /// Returns a float.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_f64(&self, key: &[u8]) -> Result<Option<f64>> {
        self.get_typed(key)
    }

    /// Returns a list of integers.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_i64_list(&self, key: &[u8]) -> Result<Option<Cow<'_, [i64]>>> {
        self.get_typed(key)
    }

    /// Returns a list of 64-bit floats.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_f64_list(&self, key: &[u8]) -> Result<Option<Cow<'_, [f64]>>> {
        self.get_typed(key)
    }

    /// Returns a list of 32-bit floats.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_f32_list(&self, key: &[u8]) -> Result<Option<Cow<'_, [f32]>>> {
        self.get_typed(key)
    }

    /// Returns a list of strings.
    ///
    /// # Errors
    /// Returns the same errors as [`get_bytes`](Self::get_bytes).
    #[inline(always)]
    pub fn get_string_list(&self, key: &[u8]) -> Result<Option<CowStringList<'_>>> {
        self.get_typed(key)
    }

    #[inline(always)]
    fn get_typed<'a, T: Typed<'a>>(&'a self, key: &[u8]) -> Result<Option<T>> {
        match self.one_file() {
            Some(file) => file.get_typed(key, file.hash(key)),
            None => self.get_typed_in_set(key),
        }
    }

    /// Does the same as `get_typed`, in a set. Out of line, to keep lookups in one file small.
    #[inline(never)]
    fn get_typed_in_set<'a, T: Typed<'a>>(&'a self, key: &[u8]) -> Result<Option<T>> {
        let (file, hash) = self.shard_of(key);
        file.get_typed(key, hash)
    }
}

impl SnapshotFile {
    /// Returns the value of a key with this hash.
    #[inline(always)]
    fn get_typed<'a, T: Typed<'a>>(&'a self, key: &[u8], hash: KeyHash) -> Result<Option<T>> {
        // The fast path checks key length and type in one comparison. All other cases, including
        // compressed and damaged values, take the slow path.
        let found = match self.find_fast(key, hash, Some(T::TYPE.code())) {
            FastResult::Found(_, bytes) => Value::from_bytes(T::TYPE, bytes).ok(),
            FastResult::Absent => return Ok(None),
            FastResult::Undecided => None,
        };
        let value = match found {
            Some(value) => T::of(value),
            None => self.get_typed_slow(key, hash)?,
        };
        Ok(value)
    }

    #[inline(never)]
    fn get_typed_slow<'a, T: Typed<'a>>(&'a self, key: &[u8], hash: KeyHash) -> Result<Option<T>> {
        let Some(stored) = self.find_hashed(key, hash)? else { return Ok(None) };
        let found = stored.value_type();
        if found != T::TYPE && found != ValueType::EmptyList {
            return Err(Error::WrongType { requested: T::TYPE, found });
        }
        let value = match stored.value()? {
            CowValue::Borrowed(value) => T::of(value),
            CowValue::Owned(value) => T::of_owned(Arc::unwrap_or_clone(value)),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(Error::WrongType { requested: T::TYPE, found }),
        }
    }
}
