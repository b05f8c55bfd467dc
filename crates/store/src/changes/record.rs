//! The stored form of a change, with its sequence number as the key.

use crate::error::{Error, Result};

/// Offsets within a record, as in `docs/formats/store.md`.
pub(crate) mod layout {
    pub(crate) const KIND: usize = 0;
    pub(crate) const NAME_LEN: usize = 1;
    pub(crate) const KEY_LEN: usize = 2;
    pub(crate) const TRANSACTION: usize = 4;
    pub(crate) const EXPIRY: usize = 12;
    pub(crate) const HEADER_LEN: usize = 20;

    pub(crate) const PUT: u8 = 1;
    pub(crate) const DELETE: u8 = 2;
    pub(crate) const EXPIRE: u8 = 3;
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The key has a new value.
    Put,
    /// The key was deleted.
    Delete,
    /// The row expired and was removed from the table.
    Expire,
}

impl Operation {
    /// Returns the name for programs: `put`, `delete` or `expire`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Expire => "expire",
        }
    }
}

/// A committed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The sequence number, greater than those of all earlier changes. A watch continues after it:
    /// [`Start::After`](crate::Start::After).
    pub sequence: u64,
    /// The number of the transaction. Changes of one transaction are consecutive.
    pub transaction: u64,
    /// What happened.
    pub operation: Operation,
    /// The name of the table; empty for the main table.
    pub table: String,
    /// The key.
    pub key: Vec<u8>,
    /// The new value; empty unless `operation` is [`Operation::Put`].
    pub value: Vec<u8>,
    /// The time of expiry of the new value, in milliseconds since 1970; `None` if the row does not
    /// expire.
    pub expires_at_ms: Option<u64>,
}

/// A change in its stored form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'r> {
    pub(crate) operation: Operation,
    pub(crate) transaction: u64,
    pub(crate) expiry_ms: u64,
    pub(crate) table: &'r str,
    pub(crate) key: &'r [u8],
    pub(crate) value: &'r [u8],
}

impl<'r> Record<'r> {
    /// Encodes the record. Names have at most 200 bytes and keys at most 511.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut header = [0; layout::HEADER_LEN];
        header[layout::KIND] = match self.operation {
            Operation::Put => layout::PUT,
            Operation::Delete => layout::DELETE,
            Operation::Expire => layout::EXPIRE,
        };
        header[layout::NAME_LEN] = self.table.len() as u8;
        let key_len = (self.key.len() as u16).to_le_bytes();
        header[layout::KEY_LEN..layout::TRANSACTION].copy_from_slice(&key_len);
        header[layout::TRANSACTION..layout::EXPIRY]
            .copy_from_slice(&self.transaction.to_le_bytes());
        header[layout::EXPIRY..].copy_from_slice(&self.expiry_ms.to_le_bytes());
        [&header, self.table.as_bytes(), self.key, self.value].concat()
    }

    pub(crate) fn read(bytes: &'r [u8]) -> Result<Self> {
        let wrong = |found: &str| Error::decode("a kept change", found);
        let Some((header, rest)) = bytes.split_first_chunk::<{ layout::HEADER_LEN }>() else {
            return Err(wrong("too few bytes"));
        };
        let operation = match header[layout::KIND] {
            layout::PUT => Operation::Put,
            layout::DELETE => Operation::Delete,
            layout::EXPIRE => Operation::Expire,
            kind => return Err(wrong(&format!("kind {kind}"))),
        };
        let word = |at: usize| {
            header[at..].first_chunk().map_or(0, |word: &[u8; 8]| u64::from_le_bytes(*word))
        };
        let key_len = [header[layout::KEY_LEN], header[layout::KEY_LEN + 1]];
        let (table, rest) = rest
            .split_at_checked(usize::from(header[layout::NAME_LEN]))
            .ok_or_else(|| wrong("a name beyond its end"))?;
        let (key, value) = rest
            .split_at_checked(usize::from(u16::from_le_bytes(key_len)))
            .ok_or_else(|| wrong("a key beyond its end"))?;
        let table = std::str::from_utf8(table).map_err(|_| wrong("a name that is not UTF-8"))?;
        let (transaction, expiry_ms) = (word(layout::TRANSACTION), word(layout::EXPIRY));
        Ok(Self { operation, transaction, expiry_ms, table, key, value })
    }

    pub(crate) fn to_change(self, sequence: u64) -> Change {
        let Self { operation, transaction, expiry_ms, table, key, value } = self;
        Change {
            sequence,
            transaction,
            operation,
            table: table.to_owned(),
            key: key.to_vec(),
            value: value.to_vec(),
            expires_at_ms: (expiry_ms > 0).then_some(expiry_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_a_short_one_refused() {
        let record = Record {
            operation: Operation::Put,
            transaction: 7,
            expiry_ms: 1 << 40,
            table: "t",
            key: b"key",
            value: b"value",
        };
        let mut bytes = record.bytes();
        let back = Record::read(&bytes).expect("a record").to_change(3);
        assert_eq!(back, record.to_change(3));
        for len in 0..layout::HEADER_LEN + 4 {
            let error = Record::read(&bytes[..len]).expect_err("too short");
            assert!(error.to_string().starts_with("expected a kept change"), "{error}");
        }
        bytes[0] = 9;
        assert!(Record::read(&bytes).is_err());
    }
}
