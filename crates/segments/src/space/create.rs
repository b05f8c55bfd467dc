//! The files of new segments.

use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::{NEXT_AHEAD, Turn, counted};
use crate::index::table::{Row, State};
use crate::layout::index as at;
use crate::lock::{Byte, Mode, on_byte};
use crate::not_kept::Reason;
use crate::random::random;
use crate::segment::appender::{Appender, FIRST_OFFSET, WriterFile};
use crate::segment::{Pages, header};
use rustix::fs::OFlags;
use std::fs::File;
use std::sync::Arc;

impl Turn<'_> {
    pub(super) fn begin_new(
        &mut self,
        whole: u64,
        kept: bool,
    ) -> Result<std::result::Result<Appender, Reason>> {
        let Some(slot) = self.index.table().free_slot() else { return Ok(Err(Reason::NoRoom)) };
        self.alone.settled = self.alone.settled.map(|since| since + 1);
        let number = self.next(at::NEXT);
        if number == 0 || number >= u64::MAX - NEXT_AHEAD {
            self.settle()?;
            return Ok(Err(Reason::Folder));
        }
        let row = Row {
            file: number,
            counted: counted(whole),
            state: State::Writing,
            kept,
            unread: false,
            turn: self.next(at::TURN),
        };
        let table = self.index.table();
        table.set_row(slot, &row);
        let made = self.make(slot, number, whole);
        match &made {
            Ok(_) => table.set_number(slot, number),
            Err(_) => table.set_row(slot, &Row::FREE),
        }
        match made {
            Ok(open) => Ok(Ok(open)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // The count of numbers was damaged; the folder tells which are taken.
                self.settle()?;
                Ok(Err(Reason::Folder))
            }
            Err(error) => Ok(Err(Reason::of_system(&error))),
        }
    }

    /// Makes the file of a segment.
    fn make(&mut self, slot: u32, number: u64, end: u64) -> std::io::Result<Appender> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let name = segment_name(number);
        let reused = self.reuse(&name, end);
        let new = reused.is_none();
        let file = match reused {
            Some(file) => file,
            None => self.of.folder.open_file(&name, flags)?,
        };
        let pages = new.then(|| Pages::of(&file, end)).flatten();
        let salt = random();
        let header = header(number, salt, self.of.opening.boot);
        let written = on_byte(&file, Byte::Writer, Mode::Alone)
            .and_then(|_| self.of.options.disk.write(&file, &header, &[], 0));
        if let Err(error) = written {
            let _ = self.of.folder.remove(&name);
            return Err(error);
        }
        Ok(Appender { pages, ..self.appender(slot, number, file, salt, FIRST_OFFSET, end) })
    }

    /// Gives the spare file a new name.
    fn reuse(&mut self, name: &str, end: u64) -> Option<File> {
        let spare = self.spare.take()?;
        let len = spare.file.metadata().ok()?.len();
        let reused = (len <= end || spare.file.set_len(end).is_ok())
            && self.of.folder.rename_new(&spare.name, name).is_ok()
            && on_byte(&spare.file, Byte::Lent, Mode::None).unwrap_or(false);
        if reused {
            return Some(spare.file);
        }
        self.spare = Some(spare);
        self.drop_spare();
        None
    }

    pub(super) fn appender(
        &self,
        slot: u32,
        number: u64,
        file: File,
        salt: u64,
        tail: u64,
        end: u64,
    ) -> Appender {
        let (family, process) = (self.index.family, std::process::id());
        let file = Arc::new(WriterFile::new(file));
        Appender { slot, number, file, salt, tail, end, family, process, pages: None }
    }
}
