//! All of a cache: what is in it, whether it is whole, and taking much of it away. Others go on
//! reading and writing meanwhile.

use crate::chunks::Chunks;
use crate::key::{Key, is_metadata};
use nuthatch_segments::{Listed, Looked as Part, Stat, Unreadable, Verified};
use std::collections::BTreeMap;

/// An object of which chunks are there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Its key.
    pub key: Key,
    /// How many of its chunks are there.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first of them expires, in milliseconds since 1970; zero if none does.
    pub expiry: u64,
    /// Whether it is pinned.
    pub pinned: bool,
    /// How often the chunk that was used most was used lately, up to three times: what was not
    /// used goes first.
    pub uses: u64,
    /// When chunks were last put, in milliseconds since 1970; it may have been others that lie
    /// beside them. Zero if nobody knows.
    pub put_ms: u64,
}

/// What [`Chunks::verify_with`] tells while it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Looked {
    /// How far it is.
    Bytes {
        /// Bytes that were looked at.
        done: u64,
        /// All bytes.
        total: u64,
    },
    /// A chunk is not as it was put.
    Damaged {
        /// The key of its object.
        key: Key,
        /// Its number.
        chunk: u64,
        /// The name of its file.
        file: String,
    },
    /// The system did not open a file, or did not read all of its bytes.
    Unread {
        /// The name of the file in the folder.
        file: String,
        /// The error of the system.
        reason: String,
    },
    /// Chunks were in a file, and nobody can tell any more which ones.
    Lost {
        /// How many.
        chunks: u64,
        /// The name of the file.
        file: String,
    },
}

/// What is gathered of an object.
#[derive(Default)]
struct Gathered {
    chunks: BTreeMap<u64, u64>,
    expiry: u64,
    uses: u64,
    put_ms: u64,
}

impl Gathered {
    fn add(&mut self, listed: Listed) {
        // A chunk that was moved meanwhile may be seen twice.
        self.chunks.extend(listed.parts);
        if listed.expiry != 0 && (self.expiry == 0 || listed.expiry < self.expiry) {
            self.expiry = listed.expiry;
        }
        self.uses = self.uses.max(listed.uses);
        self.put_ms = self.put_ms.max(listed.written_ms);
    }
}

impl Chunks {
    /// How things stand.
    pub fn stat(&self) -> Stat {
        self.segments.stat()
    }

    /// Returns the segments that this process cannot open now.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        self.segments.unreadable()
    }

    /// Returns the objects of which chunks are there, in the order of their keys, as
    /// [`Chunks::list_all`] does. Chunks in segments that cannot be read are left out.
    pub fn list(&self) -> Vec<Object> {
        self.list_all().0
    }

    /// Returns the objects of which chunks are there, in the order of their keys, and the segments
    /// that could not be read: there may be more chunks in them.
    pub fn list_all(&self) -> (Vec<Object>, Vec<Unreadable>) {
        // The list is none of what is listed: what it says is left out where it cannot be read.
        let pinned = self.segments.pinned().unwrap_or_default();
        let mut objects: BTreeMap<Key, Gathered> = BTreeMap::new();
        let unreadable = self.segments.list(|listed| {
            objects.entry(Key::found(&listed.label)).or_default().add(listed);
        });
        let object = |(key, found): (Key, Gathered)| Object {
            chunks: found.chunks.len() as u64,
            bytes: found.chunks.values().sum(),
            expiry: found.expiry,
            pinned: pinned.contains(&key.name),
            uses: found.uses,
            put_ms: found.put_ms,
            key,
        };
        let objects = objects.into_iter().filter(|(key, _)| !key.is_metadata()).map(object);
        (objects.collect(), unreadable)
    }

    /// Reads every byte, and returns counts of chunks. Damaged chunks are removed, unless the
    /// folder can only be read. Records about objects, such as the validator of an origin, are
    /// verified too, and counted only if damaged.
    pub fn verify(&self) -> Verified {
        self.verify_with(|_| {})
    }

    /// Does the same as [`Chunks::verify`], and reports each finding immediately.
    pub fn verify_with(&self, mut tell: impl FnMut(Looked)) -> Verified {
        let (mut records, mut record_bytes) = (0, 0);
        let mut verified = self.segments.verify_with(|looked| match looked {
            Part::Good { label, bytes } if is_metadata(label) => {
                records += 1;
                record_bytes += bytes;
            }
            Part::Bytes { done, total } => tell(Looked::Bytes { done, total }),
            Part::Damaged { label, number, segment } => tell(Looked::Damaged {
                key: Key::found(label),
                chunk: number,
                file: segment.to_owned(),
            }),
            Part::Lost { parts, segment } => {
                tell(Looked::Lost { chunks: parts, file: segment.to_owned() });
            }
            Part::Unread { segment, reason } => {
                let (file, reason) = (segment.to_owned(), reason.to_owned());
                tell(Looked::Unread { file, reason });
            }
            _ => {}
        });
        verified.good -= records;
        verified.good_bytes -= record_bytes;
        verified
    }
}
