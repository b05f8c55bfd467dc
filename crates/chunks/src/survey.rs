//! All objects of a cache: listing, statistics and verification. Other processes go on reading and
//! writing meanwhile.

use crate::chunks::Chunks;
use crate::key::{Key, is_metadata};
use nuthatch_segments::{RecordInfo, Stat, Unreadable, Verified, VerifyEvent as PartEvent};
use std::collections::BTreeMap;

/// An object with stored chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Its key.
    pub key: Key,
    /// Number of stored chunks.
    pub chunks: u64,
    /// Bytes of the stored chunks.
    pub bytes: u64,
    /// When the first chunk expires, in milliseconds since 1970; zero if none does.
    pub expiry: u64,
    /// Whether the object is pinned.
    pub pinned: bool,
    /// The greatest use count of a chunk, at most 3. Unused chunks are evicted first.
    pub uses: u64,
    /// The last time that a chunk was stored in a segment with chunks of this object, in
    /// milliseconds since 1970, or zero if unknown. It may have been a chunk of another object.
    pub put_ms: u64,
}

/// An event of [`Chunks::verify_with`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyEvent {
    /// Progress.
    Bytes {
        /// Bytes that were verified.
        done: u64,
        /// All bytes.
        total: u64,
    },
    /// A chunk is damaged.
    Damaged {
        /// The key of its object.
        key: Key,
        /// Its number.
        chunk: u64,
        /// The name of the segment's file.
        file: String,
    },
    /// The system did not open a file, or did not read all of its bytes.
    Unreadable {
        /// The name of the file in the folder.
        file: String,
        /// The error of the system.
        reason: String,
    },
    /// The index pointed to records of a file that no longer exist, so their keys are unknown.
    Lost {
        /// The number of chunks.
        chunks: u64,
        /// The name of the file.
        file: String,
    },
}

/// The stored records of an object.
#[derive(Default)]
struct ObjectInfo {
    chunks: BTreeMap<u64, u64>,
    expiry: u64,
    uses: u64,
    put_ms: u64,
}

impl ObjectInfo {
    fn add(&mut self, record: RecordInfo) {
        // A chunk that is moved meanwhile may be visited twice.
        self.chunks.extend(record.parts);
        if record.expiry != 0 && (self.expiry == 0 || record.expiry < self.expiry) {
            self.expiry = record.expiry;
        }
        self.uses = self.uses.max(record.uses);
        self.put_ms = self.put_ms.max(record.written_ms);
    }
}

impl Chunks {
    /// Returns statistics of the folder.
    pub fn stat(&self) -> Stat {
        self.segments.stat()
    }

    /// Returns the segments that this process cannot open now.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        self.segments.unreadable()
    }

    /// Returns the objects with stored chunks, in the order of their keys, as [`Chunks::list_all`]
    /// does. Chunks in segments that cannot be read are left out.
    pub fn list(&self) -> Vec<Object> {
        self.list_all().0
    }

    /// Returns the objects with stored chunks, in the order of their keys, and the segments that
    /// could not be read: there may be more chunks in them.
    pub fn list_all(&self) -> (Vec<Object>, Vec<Unreadable>) {
        // If the list of pins cannot be read, objects are listed without their pins.
        let pinned = self.segments.pinned().unwrap_or_default();
        let mut objects: BTreeMap<Key, ObjectInfo> = BTreeMap::new();
        let unreadable = self.segments.list(|record| {
            objects.entry(Key::found(&record.label)).or_default().add(record);
        });
        let object = |(key, found): (Key, ObjectInfo)| Object {
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

    /// Reads every byte and returns counts of chunks. Damaged chunks are removed, unless the folder
    /// can only be read. Metadata of objects are verified, too, and counted only if damaged.
    pub fn verify(&self) -> Verified {
        self.verify_with(|_| {})
    }

    /// Does the same as [`Chunks::verify`] and reports events to `report`.
    pub fn verify_with(&self, mut report: impl FnMut(VerifyEvent)) -> Verified {
        let (mut records, mut record_bytes) = (0, 0);
        let mut verified = self.segments.verify_with(|event| match event {
            PartEvent::Good { label, bytes } if is_metadata(label) => {
                records += 1;
                record_bytes += bytes;
            }
            PartEvent::Bytes { done, total } => report(VerifyEvent::Bytes { done, total }),
            PartEvent::Damaged { label, number, segment } => report(VerifyEvent::Damaged {
                key: Key::found(label),
                chunk: number,
                file: segment.to_owned(),
            }),
            PartEvent::Lost { parts, segment } => {
                report(VerifyEvent::Lost { chunks: parts, file: segment.to_owned() });
            }
            PartEvent::Unreadable { segment, reason } => {
                let (file, reason) = (segment.to_owned(), reason.to_owned());
                report(VerifyEvent::Unreadable { file, reason });
            }
            _ => {}
        });
        verified.good -= records;
        verified.good_bytes -= record_bytes;
        verified
    }
}
