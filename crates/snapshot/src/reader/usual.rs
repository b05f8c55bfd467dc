//! Lookups of the most common kind, for callers that are functions of their own.
//!
//! A loop in Rust inlines [`Snapshot::get_string`]: the calls on its rare paths cost nothing. In a
//! function for another language, each of them makes the function save registers in every lookup.
//! The lookup here has no calls.

use super::lookup::FastResult;
use super::snapshot::Snapshot;
use crate::format::hash::{KeyHash, is_common_len};
use crate::values::{Value, ValueType};

impl Snapshot {
    /// Tries a lookup without any call. Returns `None` if it cannot decide: then call
    /// [`get`](Self::get). Otherwise returns its result. `requested` is the type that the value
    /// must have, if there is one.
    ///
    /// Decides lookups in one file, of keys of 9 to 16 bytes, with short uncompressed values.
    #[doc(hidden)]
    #[inline(always)]
    pub fn get_usual(&self, key: &[u8], requested: Option<ValueType>) -> Option<Option<Value<'_>>> {
        let file = self.one_file()?;
        if !is_common_len(key) {
            return None;
        }
        let code = requested.map(ValueType::code);
        match file.find_usual(key, KeyHash::of(key, self.seed()), code) {
            // A requested type is known when this is compiled, the type of the record is not.
            FastResult::Found(found, bytes) => Value::usual(code.unwrap_or(found), bytes).map(Some),
            FastResult::Absent => Some(None),
            FastResult::Undecided => None,
        }
    }
}
