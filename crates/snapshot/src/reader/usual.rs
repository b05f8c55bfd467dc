//! Lookups of the most common kind, for callers that are functions of their own.
//!
//! A loop in Rust inlines [`Snapshot::get_string`]: the calls on its rare paths cost nothing. In a
//! function for another language, each of them makes the function save registers in every lookup.
//! The lookup here has no calls.

use super::file::SnapshotFile;
use super::lookup::FastResult;
use super::snapshot::Snapshot;
use crate::format::hash::{KeyHash, is_common_len};
use crate::values::{Value, ValueType};

impl Snapshot {
    /// Returns the file of a snapshot that is one file without compressed values, for
    /// [`get_usual`](SnapshotFile::get_usual).
    #[doc(hidden)]
    pub fn usual_file(&self) -> Option<&SnapshotFile> {
        self.one_file().filter(|file| file.header.compressed_entries == 0)
    }
}

impl SnapshotFile {
    /// Tries a lookup without any call. Returns `None` if it cannot decide: then call
    /// [`Snapshot::get`]. Otherwise returns its result. `requested` is the type that the value must
    /// have, if there is one.
    ///
    /// Decides lookups of keys of 9 to 16 bytes with short uncompressed values.
    #[doc(hidden)]
    #[inline(always)]
    pub fn get_usual(&self, key: &[u8], requested: Option<ValueType>) -> Option<Option<Value<'_>>> {
        if !is_common_len(key) {
            return None;
        }
        let code = requested.map(ValueType::code);
        match self.find_usual(key, KeyHash::of(key, self.header.seed), code) {
            // A requested type is known when this is compiled, the type of the record is not.
            FastResult::Found(found, bytes) => Value::usual(code.unwrap_or(found), bytes).map(Some),
            FastResult::Absent => Some(None),
            FastResult::Undecided => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::values::{StringListBuf, Value, ValueType};
    use crate::{Snapshot, Writer};

    /// Builds a file with values of all types under keys of 0 to 40 bytes.
    fn build() -> crate::Result<(tempfile::TempDir, Vec<Vec<u8>>)> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(folder.path().join("a.nut"))?;
        let (mut strings, mut keys) = (StringListBuf::from_iter(["a", "\u{e9}"]), Vec::new());
        let long = "x".repeat(300);
        let values: [(&str, Value<'_>); 12] = [
            ("bytes", Value::Bytes(&[0xff])),
            ("text", Value::String("Ada")),
            ("not ASCII", Value::String("\u{e9}")),
            ("long", Value::String(&long)),
            ("bool", Value::Bool(true)),
            ("i64", Value::I64(-1)),
            ("f64", Value::F64(0.5)),
            ("i64s", Value::I64List(&[1, 2])),
            ("f64s", Value::F64List(&[0.5])),
            ("f32s", Value::F32List(&[0.5])),
            ("strings", Value::StringList(strings.as_list())),
            ("empty", Value::EmptyList),
        ];
        for (name, value) in values {
            for len in name.len()..40 {
                keys.push(format!("{name:.<len$}").into_bytes());
                writer.insert(&keys[keys.len() - 1], value)?;
                keys.push(format!("absent {name:.<len$}").into_bytes());
            }
        }
        writer.finish()?;
        Ok((folder, keys))
    }

    #[test]
    fn usual_lookups_give_the_results_of_others() -> crate::Result<()> {
        let (folder, keys) = build()?;
        let snapshot = Snapshot::open(folder.path().join("a.nut"))?;
        let file = snapshot.usual_file().expect("one file without compressed values");
        let (mut found, mut absent) = (0, 0);
        for key in &keys {
            let expected = snapshot.get(key)?.map(|value| value.as_value().value_type());
            if let Some(value) = file.get_usual(key, None) {
                assert_eq!(value.map(|value| value.value_type()), expected);
                assert_eq!(value, snapshot.get(key)?.as_ref().map(|value| value.as_value()));
            }
            for requested in ValueType::ALL {
                match file.get_usual(key, Some(requested)) {
                    Some(Some(value)) => {
                        found += 1;
                        assert_eq!(Some(value.value_type()), expected);
                        assert_eq!(value.value_type(), requested);
                    }
                    Some(None) => {
                        absent += 1;
                        assert_eq!(expected, None);
                    }
                    None => {}
                }
            }
        }
        assert!(found > 50 && absent > 50, "{found} {absent}");
        Ok(())
    }
}
