//! A place in an object from which it is read on.

use crate::reading::range_reader::Pieces;
use crate::reading::version::Version;
use crate::reading::window::Ahead;
use bytes::{Buf, Bytes};
use std::io::{self, SeekFrom};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// A place in an object from which it is read on. Whoever reads on from where he stopped has more
/// and more fetched ahead; whoever goes elsewhere begins anew.
#[derive(Debug)]
pub(crate) struct Cursor {
    position: u64,
    /// The bytes at the position that are here.
    here: Bytes,
    /// What comes after them.
    pieces: Option<Pieces>,
    may_wait: bool,
}

impl Cursor {
    pub(crate) fn new(may_wait: bool) -> Self {
        Self { position: 0, here: Bytes::new(), pieces: None, may_wait }
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
            if self.pieces.is_none() {
                let ahead = Ahead::growing(version.engine.settings.read_ahead);
                let range = self.position..version.len();
                self.pieces = Some(Pieces::new(version, range, ahead, self.may_wait)?);
            }
            let Some(pieces) = &mut self.pieces else { return Poll::Pending };
            match ready!(pieces.poll_next(context)) {
                Some(Ok(bytes)) => self.here = bytes,
                Some(Err(error)) => {
                    self.pieces = None;
                    return Poll::Ready(Err(error.into()));
                }
                // Less than the object has: whoever reads finds out that it ended early.
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let len = self.here.len().min(out.remaining());
        out.put_slice(&self.here[..len]);
        self.here.advance(len);
        self.position += len as u64;
        Poll::Ready(Ok(()))
    }

    /// Goes elsewhere: also beyond the end, where there is nothing to read.
    pub(crate) fn seek(&mut self, version: &Version, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(by) => version.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let message = "a place before the start of the object, or beyond what a number can say";
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, message);
        let target = target.ok_or_else(invalid)?;
        let skipped = target.checked_sub(self.position);
        if let Some(skipped) = skipped.filter(|skipped| *skipped <= self.here.len() as u64) {
            self.here.advance(skipped as usize);
        } else {
            self.here = Bytes::new();
            if !self.pieces.as_mut().is_some_and(|pieces| pieces.skip_to(target)) {
                self.pieces = None;
            }
        }
        self.position = target;
        Ok(target)
    }
}
