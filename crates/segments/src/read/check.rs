//! Comparing parts with their checksums.

use super::{Found, ReadError};
use crate::checksum::checksum;
use crate::id::Id;
use crate::options::Check;
use crate::segment::record::check_state;
use rustix::io::Errno;
use std::sync::atomic::Ordering;

impl Found<'_> {
    /// Returns how often parts of this segment are compared with their checksum.
    pub(crate) fn check(&self) -> Check {
        match self.segments.options.check {
            Check::Never if self.segment.is_from_earlier_boot => Check::Once,
            check => check,
        }
    }

    /// Returns whether no part has to be compared with its checksum.
    pub(crate) fn needs_no_check(&self, check: Check) -> bool {
        check != Check::Always && self.head.all_good.load(Ordering::Relaxed)
    }

    /// Returns whether a part has to be compared with its checksum.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError::Damaged`] if this process found it damaged.
    pub(crate) fn needs_check(&self, check: Check, part: usize) -> Result<bool, ReadError> {
        match self.head.check_states[part].load(Ordering::Relaxed) {
            check_state::DAMAGED => Err(ReadError::Damaged(self.head.first + part as u64)),
            check_state::GOOD => Ok(check == Check::Always),
            _ => Ok(check != Check::Never),
        }
    }

    /// Returns the result of a read, or [`ReadError::Evicted`] if the segment was evicted
    /// meanwhile: then its bytes may have been overwritten. Records damage.
    pub(crate) fn confirm(&self, read: Result<(), ReadError>) -> Result<(), ReadError> {
        if !self.is_there() {
            return Err(ReadError::Evicted);
        }
        if let Err(ReadError::Damaged(number)) = read {
            self.record_damage(number);
        }
        read
    }

    /// Marks a part as damaged and removes it from the index.
    #[cold]
    fn record_damage(&self, number: u64) {
        let Some(part) = self.head.position(number) else { return };
        let previous = self.head.check_states[part].swap(check_state::DAMAGED, Ordering::SeqCst);
        self.head.all_good.store(false, Ordering::SeqCst);
        if previous != check_state::DAMAGED {
            self.segments.counters.damaged();
            self.index.sets().remove(Id::new(self.head.name, number).hash(), self.place);
        }
    }

    /// Compares the bytes of a part with its checksum.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError::Damaged`] if they differ.
    pub(crate) fn compare(&self, part: usize, bytes: &[u8]) -> Result<(), ReadError> {
        self.compare_checksum(part, checksum(bytes))
    }

    /// Compares a checksum with that of a part, and marks the part as good if they are equal.
    pub(super) fn compare_checksum(&self, part: usize, checksum: u64) -> Result<(), ReadError> {
        if checksum != self.head.parts[part].checksum {
            return Err(ReadError::Damaged(self.head.first + part as u64));
        }
        if self.head.check_states[part].swap(check_state::GOOD, Ordering::Relaxed)
            != check_state::GOOD
        {
            let all_are_good = || {
                self.head.check_states.iter().all(|k| k.load(Ordering::SeqCst) == check_state::GOOD)
            };
            if all_are_good() {
                self.head.all_good.store(true, Ordering::SeqCst);
                // Another thread may have found one of them damaged meanwhile.
                self.head.all_good.fetch_and(all_are_good(), Ordering::SeqCst);
            }
        }
        Ok(())
    }

    /// Compares a part with its checksum, even if it was checked before.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the bytes.
    pub(crate) fn verify(&self, number: u64) -> Result<Result<(), ReadError>, Errno> {
        let Some(part) = self.head.position(number) else { return Ok(Err(ReadError::Evicted)) };
        let range = self.head.range(part);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = match self.segment.try_read(self.head.data_offset + range.start, &mut bytes) {
            Ok(true) => self.compare(part, &bytes),
            Ok(false) => Err(ReadError::Damaged(number)),
            Err(errno) if self.is_there() => return Err(errno),
            Err(_) => Err(ReadError::Evicted),
        };
        Ok(self.confirm(read))
    }
}
