//! Opens files and standard input, plain or compressed.

use super::format::{Compression, Format};
use crate::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file, or standard input if the path is `-`.
#[derive(Debug, Clone)]
pub(crate) struct InputFile {
    path: PathBuf,
    /// The name in messages.
    pub(crate) name: String,
    pub(crate) compression: Compression,
}

impl InputFile {
    pub(crate) fn new(path: &Path) -> Self {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "<stdin>".to_owned() } else { path.display().to_string() };
        Self { path: path.to_owned(), name, compression: Format::of(path).1 }
    }

    /// Returns whether this is standard input.
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Returns the length in bytes if it is known before reading. Fails if the file does not exist.
    pub(crate) fn len(&self) -> Result<Option<u64>, Error> {
        if self.is_stdin() {
            return Ok(None);
        }
        let metadata = self.path.metadata().map_err(|e| Error::io(&self.name, "open", e))?;
        if metadata.is_dir() {
            return Err(Error::io(&self.name, "open", ErrorKind::IsADirectory.into()));
        }
        Ok(metadata.is_file().then_some(metadata.len()))
    }

    /// Returns whether this is the file with this device and inode.
    pub(crate) fn is_file(&self, device: u64, inode: u64) -> bool {
        let metadata = if self.is_stdin() {
            io::stdin().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata())
        } else {
            self.path.metadata()
        };
        metadata.is_ok_and(|found| found.is_file() && (found.dev(), found.ino()) == (device, inode))
    }

    /// Opens the file.
    pub(crate) fn file(&self) -> Result<File, Error> {
        File::open(&self.path).map_err(|e| Error::io(&self.name, "open", e))
    }

    /// Opens the input and decompresses it. Adds the bytes that are read from the system to `read`.
    pub(crate) fn decompressed(
        &self,
        read: &Arc<AtomicU64>,
    ) -> Result<Box<dyn Read + Send>, Error> {
        let read = Arc::clone(read);
        if self.is_stdin() {
            return Ok(Box::new(Counted { reader: io::stdin(), read }));
        }
        let file = Counted { reader: self.file()?, read };
        Ok(match self.compression {
            Compression::None => Box::new(file),
            Compression::Gzip => {
                let buffered = io::BufReader::with_capacity(1 << 16, file);
                Box::new(flate2::bufread::MultiGzDecoder::new(buffered))
            }
            Compression::Zstd => Box::new(
                zstd::stream::read::Decoder::new(file)
                    .map_err(|e| Error::io(&self.name, "decompress", e))?,
            ),
        })
    }
}

/// A reader that counts bytes.
struct Counted<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(bytes)?;
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}
