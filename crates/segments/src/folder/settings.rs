//! The settings that hold for all processes: a small file with a checksum, replaced as a whole.
//!
//! The file is the only source. The index has a copy, which processes read without a system call
//! and which is restored from the file if it is damaged.

use super::Folder;
use crate::checksum::checksum;
use crate::error::{Error, Result};
use crate::layout::{INDEX_NAME, SETTINGS_NAME, SETTINGS_NEW, settings as at};
use crate::options::{DEFAULT_LIMIT, Options};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io::Read;

/// The settings of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Maximum size of all files together, in bytes.
    pub(crate) limit: u64,
    /// Bytes of the filesystem that stay free.
    pub(crate) min_free: u64,
    /// Capacity of a new index in parts; zero to derive it from the limit.
    pub(crate) parts: u64,
    /// Whether the folder is shared with its group.
    pub(crate) shared: bool,
}

/// The content of the settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredSettings {
    Good(Settings),
    Absent,
    Damaged,
}

impl Settings {
    pub(crate) const DEFAULT: Self =
        Self { limit: DEFAULT_LIMIT, min_free: 0, parts: 0, shared: false };

    /// Returns these settings, changed by the options.
    pub(crate) fn with(self, options: &Options) -> Self {
        Self {
            limit: options.limit.unwrap_or(self.limit),
            min_free: options.min_free.unwrap_or(self.min_free),
            // The index may have grown beyond the option.
            parts: self.parts.max(options.parts.unwrap_or(0)),
            shared: options.shared.unwrap_or(self.shared),
        }
    }

    /// Returns the first option whose value differs in `new`: its name, the current and the new
    /// value.
    pub(crate) fn first_change(self, new: Self) -> Option<(&'static str, String, String)> {
        let number = |name, now: u64, new: u64| (name, now.to_string(), new.to_string());
        let changes = [
            number("limit", self.limit, new.limit),
            number("min_free", self.min_free, new.min_free),
            number("parts", self.parts, new.parts),
            ("share_with_group", self.shared.to_string(), new.shared.to_string()),
        ];
        changes.into_iter().find(|(_, now, new)| now != new)
    }

    fn encode(self) -> [u8; at::LEN] {
        let mut bytes = [0; at::LEN];
        let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
        put(at::MAGIC_AT, at::MAGIC);
        put(at::VERSION, &at::VERSION_NOW.to_le_bytes());
        put(at::LIMIT, &self.limit.to_le_bytes());
        put(at::MIN_FREE, &self.min_free.to_le_bytes());
        put(at::PARTS, &self.parts.to_le_bytes());
        put(at::SHARED, &u64::from(self.shared).to_le_bytes());
        let check = checksum(&bytes[..at::CHECK]);
        bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes the file. `Ok(None)` means damage.
    ///
    /// # Errors
    ///
    /// Returns the version if it is newer than that of this crate.
    fn decode(bytes: &[u8]) -> std::result::Result<Option<Self>, u32> {
        let Some(bytes) = bytes.first_chunk::<{ at::LEN }>() else { return Ok(None) };
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let is_valid = word(at::CHECK) == checksum(&bytes[..at::CHECK]);
        if bytes[..at::VERSION] != *at::MAGIC || !is_valid {
            return Ok(None);
        }
        let version = word(at::VERSION) as u32;
        if version != at::VERSION_NOW {
            return Err(version);
        }
        let (limit, min_free) = (word(at::LIMIT), word(at::MIN_FREE));
        let shared = word(at::SHARED) != 0;
        Ok(Some(Self { limit, min_free, parts: word(at::PARTS), shared }))
    }
}

/// Reads the settings of a folder.
///
/// # Errors
///
/// Returns the error of the system if there is a file that cannot be read, and [`Error::Version`]
/// if a newer version of this crate wrote it.
pub(crate) fn load(folder: &Folder) -> Result<StoredSettings> {
    let path = || folder.path().join(SETTINGS_NAME);
    let file = match folder.open_file(SETTINGS_NAME, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => {
            return Ok(of_version_1(folder).map_or(StoredSettings::Absent, StoredSettings::Good));
        }
        Err(Errno::LOOP | Errno::NXIO) => return Ok(StoredSettings::Damaged),
        Err(errno) => return Err(folder.error("open", SETTINGS_NAME, errno)),
    };
    let mut bytes = Vec::new();
    match file.take(at::LEN as u64).read_to_end(&mut bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::IsADirectory => {
            return Err(Error::io("read", path(), error));
        }
        _ => {}
    }
    match Settings::decode(&bytes) {
        Ok(found) => Ok(found.map_or(StoredSettings::Damaged, StoredSettings::Good)),
        Err(found) => Err(Error::Version { path: path(), expected: at::VERSION_NOW, found }),
    }
}

/// Replaces the settings durably.
///
/// # Errors
///
/// Returns the same errors as [`Folder::replace`].
pub(crate) fn store(folder: &Folder, settings: Settings) -> Result<()> {
    folder.replace(SETTINGS_NEW, SETTINGS_NAME, &settings.encode())
}

/// Returns the limits of an index of version 1. That version had no settings file.
fn of_version_1(folder: &Folder) -> Option<Settings> {
    let mut bytes = [0; 120];
    let mut file = folder.open_file(INDEX_NAME, OFlags::RDONLY).ok()?;
    file.read_exact(&mut bytes).ok()?;
    let word = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
    let mut checked = [0x5A; 24];
    checked[..16].copy_from_slice(&bytes[96..112]);
    let of_version_1 = bytes[..12] == *b"NUTINDEX\x01\0\0\0" && word(112)? == checksum(&checked);
    let (limit, min_free) = (word(96)?, word(104)?);
    of_version_1.then_some(Settings { limit, min_free, ..Settings::DEFAULT })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { limit: 64 << 20, min_free: 7, parts: 9, shared: true };

    #[test]
    fn settings_are_read_as_they_were_written() {
        assert_eq!(Settings::decode(&SETTINGS.encode()), Ok(Some(SETTINGS)));
    }

    #[test]
    fn any_flipped_bit_of_the_settings_is_damage() {
        let bytes = SETTINGS.encode();
        for bit in 0..at::LEN * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Settings::decode(&flipped), Ok(None), "bit {bit}");
        }
        for len in 0..at::LEN {
            assert_eq!(Settings::decode(&bytes[..len]), Ok(None), "{len} bytes");
        }
    }
}
