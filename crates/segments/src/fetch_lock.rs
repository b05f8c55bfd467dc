//! Claims: users of a folder agree by them who does something, whichever process they are in.

use crate::error::Error;
use crate::layout::CLAIMS_NAME;
use crate::lock::{Mode, on_bytes};
use crate::segments::Segments;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// A range of numbers that nobody else has. Dropping it gives it back, and so does the system when
/// the process dies.
#[derive(Debug)]
pub struct Claimed {
    /// `None` in a folder that can only be read.
    file: Option<Arc<File>>,
    /// Who claimed them: a fork has a copy, and must not give them back.
    process: u32,
    numbers: Range<u64>,
}

impl Segments {
    /// Claims numbers below 2^63, without waiting. `None` if another process, or another handle on
    /// the folder, has some of them; of one handle two may have the same. In a folder that can only
    /// be read every claim succeeds: no process could store what it fetched for the others.
    pub fn claim(&self, numbers: Range<u64>) -> io::Result<Option<Claimed>> {
        let len = numbers.end.saturating_sub(numbers.start);
        // No length means all there are.
        if len == 0 {
            return Ok(None);
        }
        let process = std::process::id();
        let free = |numbers| Ok(Some(Claimed { file: None, process, numbers }));
        if self.is_denied.load(Ordering::Relaxed) {
            return free(numbers);
        }
        let file = match self.claims_file() {
            Err(error) if Error::is_denial(&error) => return free(numbers),
            opened => opened?,
        };
        let taken = on_bytes(&file, numbers.start, len, Mode::Alone)?;
        Ok(taken.then(|| Claimed { file: Some(file), process, numbers }))
    }

    /// The file whose bytes stand for the numbers. It stays empty.
    fn claims_file(&self) -> io::Result<Arc<File>> {
        let process = std::process::id();
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        // A fork that used the open file of its parent would have the parent's claims.
        if let Some((_, file)) = claims.as_ref().filter(|(owner, _)| *owner == process) {
            return Ok(file.clone());
        }
        let file = match self.folder.open_file(CLAIMS_NAME, OFlags::RDWR) {
            Err(Errno::NOENT) => {
                self.folder.open_file(CLAIMS_NAME, OFlags::RDWR | OFlags::CREATE)?
            }
            opened => opened?,
        };
        let file = Arc::new(file);
        *claims = Some((process, file.clone()));
        Ok(file)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // A child that was forked meanwhile has a copy of the descriptor; so closing is not enough.
        let len = self.numbers.end - self.numbers.start;
        if let Some(file) = &self.file {
            let _ = on_bytes(file, self.numbers.start, len, Mode::None);
        }
    }
}
