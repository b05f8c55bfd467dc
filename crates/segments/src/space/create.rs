//! Creating a segment: its row and its file.

use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::{FolderGuard, MAX_NUMBER_GAP, charged_len};
use crate::index::table::{Row, State};
use crate::layout::index as at;
use crate::lock::{Byte, LockMode, lock_byte};
use crate::not_kept::NotKeptReason;
use crate::random::random;
use crate::segment::appender::{Appender, FIRST_OFFSET, WriterFile};
use crate::segment::{Preallocation, header};
use rustix::fs::OFlags;
use std::fs::File;
use std::sync::Arc;

impl FolderGuard<'_> {
    /// Creates a segment of `max_len` bytes in a free slot.
    pub(super) fn create_segment(
        &mut self,
        max_len: u64,
        in_main_queue: bool,
    ) -> Result<std::result::Result<Appender, NotKeptReason>> {
        let Some(slot) = self.index.table().free_slot() else {
            return Ok(Err(NotKeptReason::NoRoom));
        };
        self.exclusive.segments_since_repair =
            self.exclusive.segments_since_repair.map(|since| since + 1);
        let number = self.next(at::NEXT);
        if number == 0 || number >= u64::MAX - MAX_NUMBER_GAP {
            self.repair()?;
            return Ok(Err(NotKeptReason::Folder));
        }
        let row = Row {
            file_number: number,
            charged: charged_len(max_len),
            state: State::Writing,
            in_main_queue,
            is_partly_indexed: false,
            eviction_order: self.next(at::NEXT_EVICTION_ORDER),
        };
        let table = self.index.table();
        table.set_row(slot, &row);
        let created = self.create_file(slot, number, max_len);
        match &created {
            Ok(_) => table.set_number(slot, number),
            Err(_) => table.set_row(slot, &Row::FREE),
        }
        match created {
            Ok(appender) => Ok(Ok(appender)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // The counter of numbers was damaged. The repair derives it from the files.
                self.repair()?;
                Ok(Err(NotKeptReason::Folder))
            }
            Err(error) => Ok(Err(NotKeptReason::of_system(&error))),
        }
    }

    /// Creates the file of a segment, or takes over the spare file.
    fn create_file(&mut self, slot: u32, number: u64, end: u64) -> std::io::Result<Appender> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let name = segment_name(number);
        let reused = self.reuse_spare_file(&name, end);
        let is_new = reused.is_none();
        let file = match reused {
            Some(file) => file,
            None => self.segments.folder.open_file(&name, flags)?,
        };
        let preallocation = is_new.then(|| Preallocation::new(&file, end)).flatten();
        let salt = random();
        let header = header(number, salt, self.segments.opening.boot);
        let written = lock_byte(&file, Byte::Writer, LockMode::Exclusive)
            .and_then(|_| self.segments.options.disk.write(&file, &header, &[], 0));
        if let Err(error) = written {
            let _ = self.segments.folder.remove(&name);
            return Err(error);
        }
        Ok(Appender { preallocation, ..self.appender(slot, number, file, salt, FIRST_OFFSET, end) })
    }

    /// Renames the spare file.
    fn reuse_spare_file(&mut self, name: &str, end: u64) -> Option<File> {
        let spare_file = self.spare_file.take()?;
        let len = spare_file.file.metadata().ok()?.len();
        let is_reused = (len <= end || spare_file.file.set_len(end).is_ok())
            && self.segments.folder.rename_new(&spare_file.name, name).is_ok()
            && lock_byte(&spare_file.file, Byte::View, LockMode::Unlock).unwrap_or(false);
        if is_reused {
            return Some(spare_file.file);
        }
        self.spare_file = Some(spare_file);
        self.drop_spare_file();
        None
    }

    /// Returns an appender for a file that has the writer lock.
    pub(super) fn appender(
        &self,
        slot: u32,
        number: u64,
        file: File,
        salt: u64,
        tail: u64,
        end: u64,
    ) -> Appender {
        let (family, process_id) = (self.index.family, std::process::id());
        let file = Arc::new(WriterFile::new(file));
        Appender { slot, number, file, salt, tail, end, family, process_id, preallocation: None }
    }
}
