//! Sends items: those of slots, in memory and on disk, and those of keys that were changed.
//!
//! An item may move between memory and disk meanwhile. So what is on disk is sent first, in the
//! order in which it was written, then what is in memory, and then what was written to disk since.
//! An item that is read from disk is in one of the first two; one that is written to disk is in one
//! of the last two. An item may be sent twice: the target keeps the last record of a key.

use super::batches::Batches;
use super::stopped::Stopped;
use crate::cluster::Cluster;
use crate::cluster::frame::Record;
use crate::cluster::kept::ItemFiles;
use crate::compression::Compression;
use crate::item_bits::may_restore;
use nuthatch_cache::{Error, Guard, Item, Session};
use nuthatch_cluster::slot::{SlotSet, slot_of};
use nuthatch_tier::Kind;
use nuthatch_tiered::{DiskRecord, TieredCache};
use std::ops::ControlFlow;
use std::time::Instant;

/// Items that are examined under one epoch guard.
const STEP: usize = 256;
/// Recorded keys that are sent together, while items are still being sent.
const CHANGES_TO_SEND: usize = 4096;

/// Waits until a time, or until the transfer is not wanted any more. Returns whether it still is.
type Pause<'p> = &'p dyn Fn(Instant) -> bool;

/// The slots whose items are sent, and whether these are outdated meanwhile.
type Wanted<'w> = (&'w SlotSet, &'w dyn Fn() -> bool);

/// Sends items to another node.
pub(super) struct Sender<'c> {
    pub(super) cluster: &'c Cluster,
    pub(super) compression: &'c Compression,
}

impl Sender<'_> {
    /// Sends all items of slots, unless they are outdated meanwhile.
    pub(super) fn send_items(
        &self,
        session: &mut Session<'_>,
        batches: &mut Batches<'_>,
        wanted: Wanted<'_>,
        pause: Pause<'_>,
    ) -> Result<(), Stopped> {
        let ItemFiles::Disk(disk) = &self.cluster.kept.files else {
            return self.send_memory(session, batches, wanted, pause);
        };
        let files = disk.item_files();
        for file in &files {
            self.send_file(session, batches, (disk, *file), wanted, pause)?;
        }
        self.send_memory(session, batches, wanted, pause)?;
        // The last file may have got more items.
        let last = files.last().copied().unwrap_or(0);
        for file in disk.item_files().into_iter().filter(|file| *file >= last) {
            self.send_file(session, batches, (disk, file), wanted, pause)?;
        }
        Ok(())
    }

    fn send_memory(
        &self,
        session: &mut Session<'_>,
        batches: &mut Batches<'_>,
        (slots, is_outdated): Wanted<'_>,
        pause: Pause<'_>,
    ) -> Result<(), Stopped> {
        let (mut cursor, mut buffer) = (0, Vec::new());
        loop {
            // Keys of a step whose items do not fit in the frame.
            let mut later: Vec<Box<[u8]>> = Vec::new();
            let guard = session.guard_without_freeing();
            cursor = guard.scan_in_memory(cursor, STEP, |item| {
                if !slots.contains(slot_of(item.key())) {
                    return;
                }
                if batches.is_full() {
                    later.push(item.key().into());
                } else {
                    self.add(batches, item, &mut buffer);
                }
            });
            drop(guard);
            self.send_keys(session, later, batches, pause)?;
            self.send_full(session, batches, pause)?;
            if cursor == 0 || is_outdated() {
                return Ok(());
            }
        }
    }

    /// Sends the items of an item file.
    fn send_file(
        &self,
        session: &mut Session<'_>,
        batches: &mut Batches<'_>,
        (disk, file): (&TieredCache, u64),
        (slots, is_outdated): Wanted<'_>,
        pause: Pause<'_>,
    ) -> Result<(), Stopped> {
        let (mut sent, mut buffer) = (Ok(()), Vec::new());
        let partitions = |slot| slots.contains(slot);
        let _ = disk.visit_records(session, (file, &partitions), &mut |session, found| {
            let guard = session.guard_without_freeing();
            self.add_found(batches, (disk, &guard), found, &mut buffer);
            drop(guard);
            sent = self.send_full(session, batches, pause);
            if sent.is_err() || is_outdated() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        sent?;
        if pause(Instant::now()) { Ok(()) } else { Err(Stopped::Cancelled) }
    }

    /// Sends the frame if it is full, and changed keys if there are many.
    fn send_full(
        &self,
        session: &mut Session<'_>,
        batches: &mut Batches<'_>,
        pause: Pause<'_>,
    ) -> Result<(), Stopped> {
        if batches.is_full() {
            batches.send(pause)?;
        } else if !pause(Instant::now()) {
            return Err(Stopped::Cancelled);
        }
        if self.cluster.changes.len() >= CHANGES_TO_SEND {
            // Clients wait if there are too many.
            batches.set_urgent(true);
            self.send_changes(session, batches, pause)?;
            batches.set_urgent(false);
        }
        Ok(())
    }

    /// Sends the keys that were changed so far. Returns the bytes of their records.
    pub(super) fn send_changes(
        &self,
        session: &mut Session<'_>,
        batches: &mut Batches<'_>,
        pause: Pause<'_>,
    ) -> Result<usize, Stopped> {
        let (keys, is_awaited) = self.cluster.changes.take();
        if is_awaited {
            self.cluster.resume_requests();
        }
        // A request that has recorded a key may not have changed it yet.
        session.wait_for_guards_of_others();
        self.send_keys(session, keys, batches, pause)
    }

    /// Sends the items of keys, or that they have none. Returns the bytes of their records.
    fn send_keys(
        &self,
        session: &mut Session<'_>,
        keys: impl IntoIterator<Item = Box<[u8]>>,
        batches: &mut Batches<'_>,
        pause: Pause<'_>,
    ) -> Result<usize, Stopped> {
        let (mut bytes, mut buffer) = (0, Vec::new());
        for key in keys {
            let before = batches.len();
            self.add_key(session, batches, &key, &mut buffer);
            bytes += batches.len() - before;
            if batches.is_full() {
                batches.send(pause)?;
            }
        }
        Ok(bytes)
    }

    /// Adds the item of a key, or that it has none.
    fn add_key(
        &self,
        session: &mut Session<'_>,
        batches: &mut Batches<'_>,
        key: &[u8],
        buffer: &mut Vec<u8>,
    ) {
        let mut add = |guard: &Guard<'_>| match guard.peek(key) {
            Some(item) => self.add(batches, &item, buffer),
            None if guard.needs_disk() => {}
            None => batches.add(&Record::Removal { key }),
        };
        let ItemFiles::Disk(disk) = &self.cluster.kept.files else {
            return add(&session.guard_without_freeing());
        };
        let added: Result<(), Error> = disk.run(session, |guard| {
            add(guard);
            Ok(())
        });
        if added.is_err() {
            batches.leave_out(key);
        }
    }

    /// Adds an item in memory, or its removal if it has no value that another node can use.
    fn add(&self, batches: &mut Batches<'_>, item: &Item<'_>, buffer: &mut Vec<u8>) {
        if may_restore(item)
            && let Ok(raw) = self.compression.raw_item(*item, buffer)
        {
            return batches.add(&Record::of(&raw));
        }
        batches.leave_out(item.key());
    }

    /// Adds the item of a record, if it is current, or the one in memory.
    fn add_found(
        &self,
        batches: &mut Batches<'_>,
        (disk, guard): (&TieredCache, &Guard<'_>),
        found: &DiskRecord<'_>,
        buffer: &mut Vec<u8>,
    ) {
        let record = &found.record;
        if disk.is_current(guard, found) {
            let is_known = record.kind == Kind::STRING && record.database == 0;
            let has_expired = record.expires_ms.is_some_and(|at_ms| at_ms <= guard.now_ms());
            if is_known && !has_expired {
                self.add_record(batches, record, buffer);
            }
        } else if guard.find_on_disk(record.key).is_none() {
            if let Some(item) = guard.peek(record.key) {
                self.add(batches, &item, buffer);
            }
            // If it was written to disk in this moment, it is in a file that is read later.
            let _ = guard.take_on_disk();
        }
    }

    fn add_record(
        &self,
        batches: &mut Batches<'_>,
        record: &nuthatch_tier::Record<'_>,
        buffer: &mut Vec<u8>,
    ) {
        let mut value = record.value;
        if record.is_compressed {
            buffer.clear();
            if self.compression.decompress_value(value, buffer).is_err() {
                return batches.leave_out(record.key);
            }
            value = buffer;
        }
        batches.add(&Record::Item {
            key: record.key,
            value,
            frequency: record.frequency,
            flags: record.client_flags.unwrap_or(0),
            expires_ms: record.expires_ms,
            cas: record.cas,
        });
    }
}
