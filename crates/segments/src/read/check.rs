//! Comparing parts with their checksums.

use super::{Found, Unread};
use crate::checksum::checksum;
use crate::id::Id;
use crate::options::Check;
use crate::segment::record::known;
use rustix::io::Errno;
use std::sync::atomic::Ordering;

impl Found<'_> {
    pub(crate) fn check(&self) -> Check {
        match self.segments.options.check {
            Check::Never if self.segment.doubtful => Check::Once,
            check => check,
        }
    }

    /// Whether no part is to be compared with its checksum.
    pub(crate) fn need_not_check(&self, check: Check) -> bool {
        check != Check::Always && self.head.all_good.load(Ordering::Relaxed)
    }

    /// Whether the bytes of a part are to be compared with their checksum.
    pub(crate) fn to_check(&self, check: Check, part: usize) -> Result<bool, Unread> {
        match self.head.known[part].load(Ordering::Relaxed) {
            known::BAD => Err(Unread::Damaged(self.head.first + part as u64)),
            known::GOOD => Ok(check == Check::Always),
            _ => Ok(check != Check::Never),
        }
    }

    /// Tells damage from eviction: what was read while the segment went is not what was written.
    pub(crate) fn settle(&self, read: Result<(), Unread>) -> Result<(), Unread> {
        if !self.is_there() {
            return Err(Unread::Gone);
        }
        if let Err(Unread::Damaged(number)) = read {
            self.damaged(number);
        }
        read
    }

    #[cold]
    fn damaged(&self, number: u64) {
        let Some(part) = self.head.position(number) else { return };
        let before = self.head.known[part].swap(known::BAD, Ordering::SeqCst);
        self.head.all_good.store(false, Ordering::SeqCst);
        if before != known::BAD {
            self.segments.counts.damaged();
            self.index.sets().remove(Id::new(self.head.name, number).hash(), self.place);
        }
    }

    /// Compares the bytes of a part with its checksum.
    pub(crate) fn compare(&self, part: usize, bytes: &[u8]) -> Result<(), Unread> {
        self.compare_sum(part, checksum(bytes))
    }

    pub(super) fn compare_sum(&self, part: usize, sum: u64) -> Result<(), Unread> {
        if sum != self.head.parts[part].sum {
            return Err(Unread::Damaged(self.head.first + part as u64));
        }
        if self.head.known[part].swap(known::GOOD, Ordering::Relaxed) != known::GOOD {
            let all = || self.head.known.iter().all(|k| k.load(Ordering::SeqCst) == known::GOOD);
            if all() {
                self.head.all_good.store(true, Ordering::SeqCst);
                // Another thread may have found one of them damaged in between.
                self.head.all_good.fetch_and(all(), Ordering::SeqCst);
            }
        }
        Ok(())
    }

    /// Compares a part with its checksum, whatever is known of it.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the bytes: nothing is known of them.
    pub(crate) fn verify(&self, number: u64) -> Result<Result<(), Unread>, Errno> {
        let Some(part) = self.head.position(number) else { return Ok(Err(Unread::Gone)) };
        let range = self.head.range(part);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = match self.segment.try_read(self.head.data_at + range.start, &mut bytes) {
            Ok(true) => self.compare(part, &bytes),
            Ok(false) => Err(Unread::Damaged(number)),
            Err(errno) if self.is_there() => return Err(errno),
            Err(_) => Err(Unread::Gone),
        };
        Ok(self.settle(read))
    }
}
