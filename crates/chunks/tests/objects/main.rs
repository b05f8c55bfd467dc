//! Tests of objects in a cache: stored bytes are returned by every way to read.
#![expect(clippy::single_range_in_vec_init, reason = "what is missing is often one range")]

mod errors;
mod flights;
mod model;
mod pins;
mod puts;
mod ranges;
mod survey;
#[cfg(feature = "async")]
mod tasks;
mod threads;

use nuthatch_chunks::{Check, Chunks, Options};
use std::path::PathBuf;

/// A folder that is removed after the test.
pub(crate) struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub(crate) fn open(&self) -> Chunks {
        self.open_with(&Options::new().limit(16 << 20).check(Check::Always))
    }

    pub(crate) fn open_with(&self, options: &Options) -> Chunks {
        Chunks::open(self.path(), options).expect("a cache")
    }
}

/// Returns bytes that are a function of their offset in an object.
pub(crate) fn pattern(seed: u64, range: std::ops::Range<u64>) -> Vec<u8> {
    let byte = |at: u64| (at * 7 + at / 253 + seed * 31) as u8;
    range.map(byte).collect()
}
