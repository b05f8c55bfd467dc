//! The interface of the caches, and the settings of a run.

use crate::buffer::Buffer;
use std::path::{Path, PathBuf};

pub const MIB: usize = 1 << 20;

/// The settings of a run.
pub struct Setting {
    pub folder: PathBuf,
    pub limit: u64,
    pub rounds: usize,
    pub entrants: Vec<Entrant>,
}

/// An open cache of chunks.
pub trait System: Sync {
    fn put(&self, key: u64, data: &[u8]);
    /// Copies the value of a key into `out`. Returns false if the key is absent.
    fn get(&self, key: u64, out: &mut Buffer) -> bool;
    /// Waits until all puts have reached the storage from which gets read.
    fn settle(&self) {}
}

/// A cache of chunks, and a function that opens it with a folder and a limit in bytes.
#[derive(Clone, Copy)]
pub struct Entrant {
    pub name: &'static str,
    pub open: fn(&Path, u64) -> Box<dyn System>,
    /// Whether the cache may drop an entry before its first read.
    pub drops: bool,
    /// Maximum size of a put in bytes.
    pub max_put_bytes: usize,
    /// Whether the entry is another configuration of a measured system, which only reads.
    pub reads_only: bool,
    /// Whether all data that the cache reads is in its files, so that it can be evicted from
    /// memory.
    pub files_alone: bool,
}

impl Entrant {
    pub const fn new(name: &'static str, open: fn(&Path, u64) -> Box<dyn System>) -> Self {
        let max_put_bytes = usize::MAX;
        Self { name, open, drops: false, max_put_bytes, reads_only: false, files_alone: true }
    }
}

/// Returns incompressible bytes, generated before the clock starts.
pub fn payload(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
