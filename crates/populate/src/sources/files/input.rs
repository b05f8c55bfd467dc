//! An open file, on disk or remote.

use super::remote::Remote;
use crate::interruption::InterruptibleFile;
use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// An open file. Clones share the file, and each reads at offsets of its own.
#[derive(Debug)]
pub(super) enum Input {
    /// A file on disk.
    Local { file: File, len: u64 },
    /// A pipe or a device, which is read once, from its start.
    Pipe(InterruptibleFile),
    /// An object in a store, or a file of a web server.
    Remote(Remote),
}

impl Input {
    /// Returns whether the file can be read at any offset, more than once.
    pub(super) fn is_seekable(&self) -> bool {
        !matches!(self, Self::Pipe(_))
    }

    /// Returns a reader from an offset on.
    pub(super) fn reader(&self, at: u64) -> io::Result<InputReader> {
        let source = match self {
            Self::Local { file, .. } => ReaderSource::Local(file.try_clone()?),
            Self::Pipe(pipe) => ReaderSource::Pipe(pipe.try_clone()?),
            Self::Remote(remote) => ReaderSource::Remote(remote.reader()),
        };
        Ok(InputReader { source, at, len: self.len() })
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        match self {
            Self::Local { len, .. } => *len,
            Self::Pipe(_) => 0,
            Self::Remote(remote) => remote.len(),
        }
    }
}

impl ChunkReader for Input {
    type T = InputReader;

    fn get_read(&self, start: u64) -> ParquetResult<InputReader> {
        Ok(self.reader(start)?)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len());
        if end.is_none() {
            return Err(ParquetError::EOF(format!("expected {length} bytes at offset {start}")));
        }
        match self {
            Self::Local { file, .. } => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, start)?;
                Ok(bytes.into())
            }
            Self::Pipe(_) => {
                Err(ParquetError::General("expected a file, found a pipe or a device".to_owned()))
            }
            Self::Remote(remote) => Ok(remote.range(start..start + length as u64)?),
        }
    }
}

/// A reader of an open file.
#[derive(Debug)]
pub(super) struct InputReader {
    source: ReaderSource,
    at: u64,
    len: u64,
}

#[derive(Debug)]
enum ReaderSource {
    Local(File),
    Pipe(InterruptibleFile),
    Remote(super::remote::RemoteReader),
}

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.source {
            ReaderSource::Local(file) => file.read_at(buffer, self.at)?,
            ReaderSource::Pipe(file) => file.read(buffer)?,
            ReaderSource::Remote(reader) => reader.read_at(buffer, self.at)?,
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for InputReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.len.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
