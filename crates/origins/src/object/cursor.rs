//! The position of a sequential reader.

use crate::reading::range_reader::RangeReader;
use crate::reading::version::Version;
use crate::reading::window::ReadAhead;
use bytes::{Buf, Bytes};
use std::io::{self, SeekFrom};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// The position of a sequential reader. Sequential reading increases the read-ahead; seeking resets
/// it.
#[derive(Debug)]
pub(crate) struct Cursor {
    position: u64,
    /// Received bytes from the position on.
    here: Bytes,
    /// Reads the bytes behind them.
    reader: Option<RangeReader>,
    may_block: bool,
}

impl Cursor {
    pub(crate) fn new(may_block: bool) -> Self {
        Self { position: 0, here: Bytes::new(), reader: None, may_block }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn poll_read(
        &mut self,
        version: &Arc<Version>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if out.remaining() == 0 || self.position >= version.len() {
            return Poll::Ready(Ok(()));
        }
        if self.here.is_empty() {
            if self.reader.is_none() {
                let ahead = ReadAhead::growing(version.engine.settings.read_ahead);
                let range = self.position..version.len();
                self.reader = Some(RangeReader::new(version, range, ahead, self.may_block)?);
            }
            let Some(reader) = &mut self.reader else { return Poll::Pending };
            match ready!(reader.poll_next(context)) {
                Some(Ok(bytes)) => self.here = bytes,
                Some(Err(error)) => {
                    self.reader = None;
                    return Poll::Ready(Err(error.into()));
                }
                // Fewer bytes than the object has: the object ended early.
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let len = self.here.len().min(out.remaining());
        out.put_slice(&self.here[..len]);
        self.here.advance(len);
        self.position += len as u64;
        Poll::Ready(Ok(()))
    }

    /// Moves the position. A position behind the end is valid; nothing can be read there.
    pub(crate) fn seek(&mut self, version: &Version, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(by) => version.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let message = "seek to a negative position, or to one beyond 2^64 - 1";
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, message);
        let target = target.ok_or_else(invalid)?;
        let skipped = target.checked_sub(self.position);
        if let Some(skipped) = skipped.filter(|skipped| *skipped <= self.here.len() as u64) {
            self.here.advance(skipped as usize);
        } else {
            self.here = Bytes::new();
            if !self.reader.as_mut().is_some_and(|reader| reader.skip_to(target)) {
                self.reader = None;
            }
        }
        self.position = target;
        Ok(target)
    }
}
