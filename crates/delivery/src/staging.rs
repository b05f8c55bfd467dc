//! Files that jobs leave below a destination before they publish a snapshot, and downloads.

use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::{DataFile, is_plain_name};
use std::path::Path;

/// A file that was staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// Its length in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of its contents, in hexadecimal digits.
    pub blake3: String,
}

/// The staged files of a job, below a destination. Machines that build shards of one snapshot leave
/// them there for the machine that publishes it. No manifest refers to them.
#[derive(Clone, Debug)]
pub struct Staging {
    destination: Destination,
    job: String,
}

impl Staging {
    /// Returns the staged files of a job. Its name is that of a folder, and must be unique.
    ///
    /// # Errors
    /// Returns [`Error::Contents`] if the name is not that of a folder.
    pub fn new(destination: Destination, job: &str) -> Result<Self> {
        check_name(job)?;
        Ok(Self { destination, job: job.to_owned() })
    }

    /// Uploads a file. Replaces an earlier one with the name.
    ///
    /// # Errors
    /// Returns [`Error::Contents`] for an invalid name, [`Error::Io`] if the file cannot be read,
    /// and [`Error::Store`] if it cannot be written.
    pub async fn put(&self, file: &Path, name: &str) -> Result<StagedFile> {
        self.destination.check_writable()?;
        check_name(name)?;
        let (bytes, blake3) = self.destination.put_staged(&self.job, name, file).await?;
        Ok(StagedFile { bytes, blake3 })
    }

    /// Downloads a file that was staged, and verifies it.
    ///
    /// # Errors
    /// Returns [`Error::Contents`] if it has other bytes, [`Error::Store`] if it cannot be read,
    /// and [`Error::Io`] if it cannot be written.
    pub async fn get(&self, name: &str, staged: &StagedFile, to: &Path) -> Result<()> {
        let found = self.destination.get_staged(&self.job, name, to).await?;
        check_contents(name, (staged.bytes, &staged.blake3), &found)
    }

    /// Removes all files of the job. Files of other jobs stay.
    ///
    /// # Errors
    /// Returns [`Error::Io`] or [`Error::Store`] if one cannot be removed.
    pub async fn remove(&self) -> Result<()> {
        self.destination.remove_staged(&self.job).await
    }
}

/// Downloads a file of a generation, and verifies it.
///
/// # Errors
/// Returns [`Error::Contents`] if it has other bytes than the manifest says, [`Error::Store`] if it
/// cannot be read, and [`Error::Io`] if it cannot be written.
pub async fn download(destination: &Destination, file: &DataFile, to: &Path) -> Result<()> {
    let found = destination.get_object(&file.object, to).await?;
    check_contents(&destination.object_address(&file.object), (file.bytes, &file.blake3), &found)
}

fn check_contents(place: &str, expected: (u64, &str), found: &(u64, String)) -> Result<()> {
    if expected == (found.0, found.1.as_str()) {
        return Ok(());
    }
    Err(Error::Contents {
        place: place.to_owned(),
        expected: format!("{} bytes with the hash {}", expected.0, expected.1),
        found: format!("{} bytes with the hash {}", found.0, found.1),
    })
}

fn check_name(name: &str) -> Result<()> {
    if is_plain_name(name) {
        return Ok(());
    }
    Err(Error::Contents {
        place: "the name of a staged file or job".to_owned(),
        expected: "at most 240 bytes without a slash, a control character or a leading dot"
            .to_owned(),
        found: format!("{name:?}"),
    })
}
