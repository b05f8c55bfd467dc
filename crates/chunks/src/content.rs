//! Chunks that are named by the BLAKE3 hash of their bytes.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::put::Stored;

impl Chunks {
    /// Stores a chunk under the BLAKE3 hash of its bytes. Returns the hash.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Chunks::put`].
    pub fn put_content(&self, data: &[u8]) -> Result<([u8; 32], Stored)> {
        let hash = *blake3::hash(data).as_bytes();
        let stored = self.put(&Key::content(&hash), 0..1, &[0, data.len() as u64], data)?;
        Ok((hash, stored))
    }

    /// Stores a chunk under this hash, which must be the BLAKE3 hash of its bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Content`] if the bytes have another hash, and errors as [`Chunks::put`]
    /// does.
    pub fn put_content_as(&self, hash: &[u8; 32], data: &[u8]) -> Result<Stored> {
        if blake3::hash(data) != *hash {
            return Err(Error::Content);
        }
        self.put(&Key::content(hash), 0..1, &[0, data.len() as u64], data)
    }

    /// Returns the chunk with a hash, or `None` if it is missing. The hash is computed again: a
    /// chunk with other bytes, for example because another program changed the file, is removed and
    /// counts as missing.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Chunks::get`].
    pub fn get_content(&self, hash: &[u8; 32]) -> Result<Option<Vec<u8>>> {
        let key = Key::content(hash);
        let found = self.get(&key, 0..1)?.found().map(|read| read.data);
        let is_right = found.as_ref().is_none_or(|data| blake3::hash(data) == *hash);
        if !is_right {
            self.discard(&key);
            return Ok(None);
        }
        Ok(found)
    }
}
