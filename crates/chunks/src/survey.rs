//! All of a cache: what is in it, whether it is whole, and taking much of it away. Others go on
//! reading and writing meanwhile.

use crate::chunks::Chunks;
use crate::error::Result;
use crate::key::{Key, is_metadata};
use nuthatch_segments::{Listed, Looked as Part, Stat, Unreadable, Verified};
use std::collections::{BTreeMap, BTreeSet};

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

    /// Evicts what has expired, then what is worth least until no more than so many bytes are used.
    /// Answers how many are.
    pub fn prune(&self, to: Option<u64>) -> Result<u64> {
        Ok(self.segments.prune(to)?)
    }

    /// Evicts what was put before a time, in milliseconds since 1970, as far as nothing beside it
    /// was put since. What is pinned stays, and what was moved because it is used counts as put
    /// when it was moved. Answers how many bytes are used.
    pub fn prune_older(&self, than_ms: u64) -> Result<u64> {
        Ok(self.segments.prune_older(than_ms)?)
    }

    /// Evicts everything but what is pinned and what other processes are writing to. Answers how
    /// many bytes are still used.
    pub fn clear(&self) -> Result<u64> {
        Ok(self.segments.clear()?)
    }

    /// Removes the chunks of an object, and ends its pin. Other versions at the same address stay.
    /// Returns the number of removed chunks.
    ///
    /// # Errors
    /// [`Error::Folder`](crate::Error::Folder) if this process can only read the folder, and if the
    /// object is pinned and the list of pins cannot be changed. Its chunks are removed then.
    pub fn remove(&self, key: &Key) -> Result<u64> {
        self.segments.check_writable()?;
        let removed = self.discard(key);
        if self.segments.pinned()?.contains(&key.name) {
            self.unpin(key)?;
        }
        self.remove_metadata_of(key);
        Ok(removed)
    }

    /// Removes the chunks of an object that turned out to be wrong, and keeps its pin. Returns the
    /// number of removed chunks.
    pub fn discard(&self, key: &Key) -> u64 {
        let mut numbers = BTreeSet::new();
        self.segments.list(|listed| {
            if *listed.label == *key.label {
                numbers.extend(listed.parts.iter().map(|(number, _)| *number));
            }
        });
        for &number in &numbers {
            self.segments.remove(&key.id(number));
        }
        numbers.len() as u64
    }

    /// Pins an object or unpins it. The chunks of a pinned object are not evicted, those that are
    /// put later included.
    ///
    /// The pin of an object of blocks belongs to its address: when [`Chunks::put_metadata`] records
    /// another version, the pin moves from the previous version to that one.
    pub fn pin(&self, key: &Key, pinned: bool) -> Result<()> {
        if pinned { self.pin_versions(std::slice::from_ref(key)) } else { self.unpin(key) }
    }

    /// Pins several objects at one address, in place of those that are pinned there.
    pub fn pin_versions(&self, keys: &[Key]) -> Result<()> {
        let Some(first) = keys.first() else { return Ok(()) };
        let group = pin_group(first);
        // Metadata are small, and without them nothing can be read while the origin is away.
        let mut names = vec![group];
        names.extend(keys.iter().map(|key| key.name));
        Ok(self.segments.pin_group(group, &names)?)
    }

    fn unpin(&self, key: &Key) -> Result<()> {
        self.segments.unpin_group(pin_group(key))?;
        // A pin that was made before pins belonged to addresses.
        if self.segments.pinned()?.contains(&key.name) {
            self.segments.unpin_group(key.name)?;
        }
        Ok(())
    }

    /// Changes the [`Options::limit`](nuthatch_segments::Options::limit) for all processes. Like
    /// that option, it evicts at once what the folder has beyond a lower limit.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        Ok(self.segments.set_limit(bytes)?)
    }
}

/// Returns the group that a pin of an object belongs to: its address, or the object itself.
fn pin_group(key: &Key) -> [u8; 16] {
    let metadata = key.address().and_then(|address| Key::metadata(&address).ok());
    metadata.map_or(key.name, |metadata| metadata.name)
}
