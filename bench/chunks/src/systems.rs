//! What takes part: Nuthatch, others, and what the machine does without any cache.

use crate::buffer::Buffer;
use std::path::{Path, PathBuf};

pub const MIB: usize = 1 << 20;

/// What a race is run with.
pub struct Setting {
    pub folder: PathBuf,
    pub limit: u64,
    pub rounds: usize,
    pub entrants: Vec<Entrant>,
}

/// A cache of chunks, open.
pub trait System: Sync {
    fn put(&self, key: u64, data: &[u8]);
    /// Copies the value of a key out. False if it is not there.
    fn get(&self, key: u64, out: &mut Buffer) -> bool;
    /// Has what was put arrive where it is read from.
    fn settle(&self) {}
}

/// A cache of chunks, and how it is opened: a folder and a limit of bytes.
#[derive(Clone, Copy)]
pub struct Entrant {
    pub name: &'static str,
    pub open: fn(&Path, u64) -> Box<dyn System>,
    /// Whether it may drop what was put before it was ever read.
    pub drops: bool,
    /// How many bytes a put may have.
    pub put_most: usize,
    /// Whether it is another way to read of one that takes part already.
    pub reads_only: bool,
    /// Whether its files alone have what it reads: then they can be made to leave memory.
    pub files_alone: bool,
}

impl Entrant {
    pub const fn new(name: &'static str, open: fn(&Path, u64) -> Box<dyn System>) -> Self {
        let put_most = usize::MAX;
        Self { name, open, drops: false, put_most, reads_only: false, files_alone: true }
    }
}

/// Bytes that do not compress and are made before any clock starts.
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
