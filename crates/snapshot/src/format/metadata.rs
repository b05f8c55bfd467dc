//! The metadata section: pairs of a name and a value, in ascending order of the names.

use super::layout::{limits, metadata as at};
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Metadata that is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetadataBuilder {
    pairs: BTreeMap<String, Vec<u8>>,
    /// Length in bytes of the section.
    len: u64,
}

impl MetadataBuilder {
    /// Sets the value of a name.
    ///
    /// # Errors
    /// Returns [`Error::Limit`] if the name is empty or too long, or the section becomes too long.
    pub(crate) fn set(&mut self, name: &str, value: &[u8]) -> Result<()> {
        let max = limits::MAX_METADATA_NAME_LEN;
        if !(1..=max).contains(&name.len()) {
            let what = "length in bytes of a name of metadata (at least 1)";
            return Err(Error::limit(what, max as u64, name.len() as u64));
        }
        let pair_len = |value: &[u8]| (at::HEAD + name.len() + value.len()) as u64;
        let replaced = self.pairs.get(name).map_or(0, |value| pair_len(value));
        let len = self.len - replaced + pair_len(value);
        if len > limits::MAX_METADATA_LEN {
            return Err(Error::limit("bytes of metadata", limits::MAX_METADATA_LEN, len));
        }
        self.pairs.insert(name.to_owned(), value.to_vec());
        self.len = len;
        Ok(())
    }

    /// Encodes the section. It is empty if there are no pairs.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len as usize);
        for (name, value) in &self.pairs {
            bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(value);
        }
        bytes
    }
}

/// Why bytes are not a metadata section. The offset is in the section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidMetadata {
    pub(crate) offset: u64,
    pub(crate) expected: &'static str,
    pub(crate) found: String,
}

/// Decodes a metadata section into pairs of name and value.
///
/// # Errors
/// Returns [`InvalidMetadata`] if the bytes contradict the format.
pub(crate) fn decode(section: &[u8]) -> std::result::Result<Vec<(&str, &[u8])>, InvalidMetadata> {
    let (mut pairs, mut begin) = (Vec::<(&str, &[u8])>::new(), 0);
    while begin < section.len() {
        let invalid = |expected, found| InvalidMetadata { offset: begin as u64, expected, found };
        let rest = &section[begin..];
        let Some([n0, n1, v0, v1, v2, v3]) = rest.first_chunk::<{ at::HEAD }>() else {
            return Err(invalid("the lengths of a name and a value", rest.len().to_string()));
        };
        let name_len = usize::from(u16::from_le_bytes([*n0, *n1]));
        if !(1..=limits::MAX_METADATA_NAME_LEN).contains(&name_len) {
            return Err(invalid("a name of 1 to 255 bytes", name_len.to_string()));
        }
        let value_len = u32::from_le_bytes([*v0, *v1, *v2, *v3]) as usize;
        let (name_end, end) = (at::HEAD + name_len, at::HEAD + name_len + value_len);
        let Some(value) = rest.get(name_end..end) else {
            let found = format!("{name_len} and {value_len} bytes");
            return Err(invalid("a name and a value within the section", found));
        };
        let Ok(name) = std::str::from_utf8(&rest[at::HEAD..name_end]) else {
            return Err(invalid("a name in UTF-8", "other bytes".to_owned()));
        };
        if pairs.last().is_some_and(|(before, _)| *before >= name) {
            return Err(invalid("names in ascending order, each once", format!("{name:?}")));
        }
        pairs.push((name, value));
        begin += end;
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(pairs: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = MetadataBuilder::default();
        for (name, value) in pairs {
            builder.set(name, value).expect("a pair within the limits");
        }
        assert_eq!(builder.len, builder.to_bytes().len() as u64);
        builder.to_bytes()
    }

    #[test]
    fn metadata_round_trips_in_the_order_of_names() {
        assert_eq!(decode(&built(&[])), Ok(vec![]));
        let bytes = built(&[("source", b"old"), ("name", b"users"), ("source", b"\xff")]);
        assert_eq!(decode(&bytes), Ok(vec![("name", &b"users"[..]), ("source", b"\xff")]));
    }

    #[test]
    fn too_long_metadata_is_a_limit_and_changes_nothing() {
        let mut builder = MetadataBuilder::default();
        builder.set("a", &vec![0; (1 << 20) - 7]).expect("the maximum length");
        for (name, value) in [("", &b""[..]), ("b", b""), (&"n".repeat(256), b"")] {
            let error = builder.set(name, value).expect_err("a limit");
            assert_eq!(error.code(), "limit", "{name}");
        }
        builder.set("a", b"").expect("a shorter value");
        builder.set(&"n".repeat(255), b"").expect("a name of the maximum length");
    }

    #[test]
    fn every_cut_and_every_wrong_order_is_invalid() {
        let bytes = built(&[("a", b"1"), ("b", b"22")]);
        let ends = [0, 8];
        for len in (0..bytes.len()).filter(|len| !ends.contains(len)) {
            let invalid = decode(&bytes[..len]).expect_err("a cut section");
            assert_eq!(invalid.offset, if len < 8 { 0 } else { 8 }, "{len}");
        }
        let twice = [&bytes[..8], &bytes[..8]].concat();
        assert_eq!(decode(&twice).expect_err("a name twice").offset, 8);
        assert_eq!(decode(&[0; 6]).expect_err("an empty name").offset, 0);
        let other = [&[1, 0, 0, 0, 0, 0, 0xff][..]].concat();
        assert_eq!(decode(&other).expect_err("not UTF-8").expected, "a name in UTF-8");
    }
}
