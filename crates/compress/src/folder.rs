//! A folder of dictionaries that compressed values on disk need after the process has ended.
//!
//! A manifest names the dictionaries of the folder and their checksums. So a file that is missing
//! or damaged is noticed, and the id of a dictionary is never given to another one.

use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::file::{EXTENSION, PARTIAL, read_dictionary, sync, write_file};
use crate::random::Random;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::num::NonZeroU32;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use twox_hash::XxHash3_64;

/// The name of the manifest.
const MANIFEST: &str = "manifest";
/// The first line of a manifest.
const TITLE: &str = "nuthatch dictionaries 1";

/// The ids after which new ones begin if the manifest is lost. Ids that zstd or a set assigns are
/// lower.
const AFTER_LOSS: std::ops::Range<u32> = 1 << 31..3 << 30;

/// A folder that keeps the dictionaries of a [`Dictionaries`](crate::Dictionaries). One process at
/// a time may use it.
#[derive(Debug)]
pub struct DictionaryFolder {
    path: PathBuf,
    manifest: Mutex<Manifest>,
}

/// The content of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Manifest {
    /// Values may need unknown dictionaries with an id up to this one.
    reserved: u32,
    dictionaries: BTreeMap<NonZeroU32, Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    checksum: u64,
    /// Whether the file exists and has this checksum, as far as it was read or written.
    is_valid: bool,
}

impl DictionaryFolder {
    /// Opens a folder, and creates it for the user of the process alone if there is none.
    ///
    /// Without `has_values`, no value needs a dictionary of the folder, and those in it are
    /// removed. Otherwise values may exist that were compressed with the dictionaries of the
    /// folder. If its manifest is missing or damaged, `seed` determines the ids of new
    /// dictionaries, which must differ from the unknown ones.
    ///
    /// # Errors
    ///
    /// Returns [`Error::File`] if the system refuses to read or write the folder.
    pub fn open(path: &Path, has_values: bool, seed: u64) -> Result<Self> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(|error| failed(path, "create", error))?;
        if !has_values {
            clear(path)?;
        }
        let found = Manifest::read(&path.join(MANIFEST))?;
        let manifest = found.clone().unwrap_or_else(|| {
            let len = u64::from(AFTER_LOSS.end - AFTER_LOSS.start);
            let reserved = AFTER_LOSS.start + Random::new(seed).below(len) as u32;
            Manifest { reserved: if has_values { reserved } else { 0 }, ..Manifest::default() }
        });
        if found.is_none() {
            manifest.write(path)?;
        }
        Ok(Self { path: path.to_owned(), manifest: Mutex::new(manifest) })
    }

    /// Returns the dictionaries, those with the greatest ids first, or why one cannot be read: it
    /// is missing or damaged.
    ///
    /// # Errors
    ///
    /// Returns [`Error::File`] if the system refuses to read a file that exists.
    pub(crate) fn read(&self) -> Result<Vec<(NonZeroU32, Result<Vec<u8>>)>> {
        let mut manifest = self.lock();
        let mut all = Vec::new();
        for (id, entry) in manifest.dictionaries.iter_mut().rev() {
            let path = self.file(*id);
            let read = match read_dictionary(&path) {
                Ok(bytes) if checksum(&bytes) == entry.checksum => Ok(bytes),
                Ok(bytes) => {
                    let (expected, found) = (entry.checksum, checksum(&bytes));
                    let problem =
                        format!("expected the checksum {expected:016x}, found {found:016x}");
                    Err(failed(&path, "read", io::Error::new(ErrorKind::InvalidData, problem)))
                }
                Err(Error::File { source, .. }) if is_damage(&source) => {
                    Err(failed(&path, "read", source))
                }
                Err(error) => return Err(error),
            };
            entry.is_valid = read.is_ok();
            all.push((*id, read));
        }
        Ok(all)
    }

    /// Returns the greatest id that values may have.
    pub(crate) fn max_id(&self) -> u32 {
        let manifest = self.lock();
        let last = manifest.dictionaries.last_key_value().map_or(0, |(id, _)| id.get());
        last.max(manifest.reserved)
    }

    /// Returns whether no value has the id of this dictionary that was compressed with another one.
    pub(crate) fn may_have_id(&self, dictionary: &Dictionary) -> bool {
        let manifest = self.lock();
        match manifest.dictionaries.get(&dictionary.id()) {
            Some(entry) => entry.checksum == checksum(dictionary.as_bytes()),
            None => dictionary.id().get() > manifest.reserved,
        }
    }

    /// Writes a dictionary durably, unless it is in the folder. Values that need it can be stored
    /// once this returns.
    pub(crate) fn save(&self, dictionary: &Dictionary) -> Result<()> {
        if !self.may_have_id(dictionary) {
            return Err(Error::DuplicateId { id: dictionary.id().get() });
        }
        let mut manifest = self.lock();
        if manifest.dictionaries.get(&dictionary.id()).is_some_and(|entry| entry.is_valid) {
            return Ok(());
        }
        write_file(&self.file(dictionary.id()), dictionary.as_bytes())?;
        // The file must exist before the manifest names it.
        sync(&self.path)?;
        let entry = Entry { checksum: checksum(dictionary.as_bytes()), is_valid: true };
        let mut changed = manifest.clone();
        changed.dictionaries.insert(dictionary.id(), entry);
        changed.write(&self.path)?;
        *manifest = changed;
        Ok(())
    }

    fn file(&self, id: NonZeroU32) -> PathBuf {
        self.path.join(format!("{id}.{EXTENSION}"))
    }

    fn lock(&self) -> MutexGuard<'_, Manifest> {
        // It is replaced as a whole, so a panic of another thread leaves none half changed.
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manifest {
    /// Reads a manifest. Returns `None` if it is missing or damaged.
    fn read(path: &Path) -> Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => Ok(std::str::from_utf8(&bytes).ok().and_then(Self::parse)),
            Err(error) if is_damage(&error) => Ok(None),
            Err(error) => Err(failed(path, "read", error)),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (lines, end) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let found = end.strip_prefix("checksum ")?;
        if u64::from_str_radix(found, 16) != Ok(checksum(lines.as_bytes())) {
            return None;
        }
        let mut lines = lines.strip_prefix(TITLE)?.strip_prefix("\nreserved ")?.lines();
        let mut manifest = Self { reserved: lines.next()?.parse().ok()?, ..Self::default() };
        for line in lines {
            let (id, checksum) = line.split_once(' ')?;
            let checksum = u64::from_str_radix(checksum, 16).ok()?;
            manifest.dictionaries.insert(id.parse().ok()?, Entry { checksum, is_valid: false });
        }
        Some(manifest)
    }

    fn text(&self) -> String {
        let mut text = format!("{TITLE}\nreserved {}", self.reserved);
        for (id, Entry { checksum, .. }) in &self.dictionaries {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{id} {checksum:016x}");
        }
        let checksum = checksum(text.as_bytes());
        text + &format!("\nchecksum {checksum:016x}\n")
    }

    /// Writes the manifest durably.
    fn write(&self, folder: &Path) -> Result<()> {
        write_file(&folder.join(MANIFEST), self.text().as_bytes())?;
        sync(folder)
    }
}

/// Removes the manifest and all dictionaries of a folder.
fn clear(folder: &Path) -> Result<()> {
    let listed = |error| failed(folder, "list", error);
    // The manifest is the last: as long as it exists, no id is given to another dictionary.
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(listed)? {
        let path = entry.map_err(listed)?.path();
        let extension = path.extension();
        if extension.is_some_and(|found| found == EXTENSION || found == PARTIAL) {
            paths.push(path);
        }
    }
    paths.push(folder.join(MANIFEST));
    for path in paths {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed(&path, "remove", error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether an error of reading means that the content is missing or damaged, and not that
/// the system refuses to read it.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData)
}

fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

fn failed(path: &Path, operation: &'static str, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), operation, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("not 0")
    }

    #[test]
    fn each_damaged_byte_of_a_manifest_is_found() {
        let mut manifest = Manifest { reserved: 7, ..Manifest::default() };
        manifest.dictionaries.insert(id(8), Entry { checksum: 1, is_valid: false });
        manifest.dictionaries.insert(id(300), Entry { checksum: u64::MAX, is_valid: false });
        let text = manifest.text();
        assert_eq!(Manifest::parse(&text), Some(manifest));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let damaged = String::from_utf8(bytes).expect("ASCII");
            assert_eq!(Manifest::parse(&damaged), None, "{damaged}");
            assert_eq!(Manifest::parse(&text[..at]), None);
        }
    }

    #[test]
    fn ids_begin_after_all_unknown_ones_if_the_manifest_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("dictionaries");
        let open = |has_values| DictionaryFolder::open(&path, has_values, 5).expect("a folder");
        assert_eq!(open(false).max_id(), 0);
        assert_eq!(open(true).max_id(), 0);
        fs::remove_file(path.join(MANIFEST)).expect("a manifest");
        let reserved = open(true).max_id();
        assert!(AFTER_LOSS.contains(&reserved), "{reserved}");
        assert_eq!(open(true).max_id(), reserved);
        assert_eq!(open(false).max_id(), 0);
    }
}
