//! Chunks that are named by the BLAKE3 hash of their bytes.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::put::Stored;

impl Chunks {
    /// Puts a chunk under the hash of its bytes.
    pub fn put_content(&self, data: &[u8]) -> Result<([u8; 32], Stored)> {
        let hash = *blake3::hash(data).as_bytes();
        let stored = self.put(&Key::content(&hash), 0..1, &[0, data.len() as u64], data)?;
        Ok((hash, stored))
    }

    /// Puts a chunk that ought to have a hash. One that has another is an error.
    pub fn put_content_as(&self, hash: &[u8; 32], data: &[u8]) -> Result<Stored> {
        if blake3::hash(data) != *hash {
            return Err(Error::Content);
        }
        self.put(&Key::content(hash), 0..1, &[0, data.len() as u64], data)
    }

    /// The chunk with a hash, which is computed anew: what comes back has it, whoever wrote the
    /// file.
    pub fn get_content(&self, hash: &[u8; 32]) -> Result<Option<Vec<u8>>> {
        let key = Key::content(hash);
        let found = self.get(&key, 0..1)?.found().map(|read| read.data);
        let right = found.as_ref().is_none_or(|data| blake3::hash(data) == *hash);
        if !right {
            self.discard(&key);
            return Ok(None);
        }
        Ok(found)
    }
}
