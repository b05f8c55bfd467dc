//! The settings that hold for every process: a small file with a checksum, replaced whole.
//!
//! The file is the only source. The index has a copy, which processes read without a call to the
//! system, and which is written again from the file when it is damaged.

use super::Folder;
use crate::error::{Error, Result};
use crate::layout::{INDEX_NAME, SETTINGS_NAME, SETTINGS_NEW, settings as at};
use crate::options::{LIMIT_DEFAULT, Options};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

/// The settings of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes that all files may have together.
    pub(crate) limit: u64,
    /// Bytes of the file system that stay free.
    pub(crate) least_free: u64,
    /// Parts that a new index has room for; zero if the limit decides.
    pub(crate) parts: u64,
    /// Whether the group of the folder may use it.
    pub(crate) shared: bool,
}

/// What the file of settings has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Good(Settings),
    Absent,
    Damaged,
}

impl Settings {
    pub(crate) const DEFAULT: Self =
        Self { limit: LIMIT_DEFAULT, least_free: 0, parts: 0, shared: false };

    /// Returns these settings with what the options ask for in their place.
    pub(crate) fn with(self, options: &Options) -> Self {
        Self {
            limit: options.limit.unwrap_or(self.limit),
            least_free: options.least_free.unwrap_or(self.least_free),
            // It may have grown beyond what was asked for.
            parts: self.parts.max(options.parts.unwrap_or(0)),
            shared: options.shared.unwrap_or(self.shared),
        }
    }

    /// Returns the name of the first option that other settings would change, its value now and
    /// then.
    pub(crate) fn first_change(self, then: Self) -> Option<(&'static str, String, String)> {
        let number = |name, now: u64, then: u64| (name, now.to_string(), then.to_string());
        let changes = [
            number("limit", self.limit, then.limit),
            number("least_free", self.least_free, then.least_free),
            number("parts", self.parts, then.parts),
            ("share_with_group", self.shared.to_string(), then.shared.to_string()),
        ];
        changes.into_iter().find(|(_, now, then)| now != then)
    }

    fn encode(self) -> [u8; at::LEN] {
        let mut bytes = [0; at::LEN];
        let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
        put(at::MAGIC_AT, at::MAGIC);
        put(at::VERSION, &at::VERSION_NOW.to_le_bytes());
        put(at::LIMIT, &self.limit.to_le_bytes());
        put(at::LEAST_FREE, &self.least_free.to_le_bytes());
        put(at::PARTS, &self.parts.to_le_bytes());
        put(at::SHARED, &u64::from(self.shared).to_le_bytes());
        let check = xxh3_64(&bytes[..at::CHECK]);
        bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes a file. `Err` has the version of a newer one, `Ok(None)` means damage.
    fn decode(bytes: &[u8]) -> std::result::Result<Option<Self>, u32> {
        let Some(bytes) = bytes.first_chunk::<{ at::LEN }>() else { return Ok(None) };
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let whole = word(at::CHECK) == xxh3_64(&bytes[..at::CHECK]);
        if bytes[..at::VERSION] != *at::MAGIC || !whole {
            return Ok(None);
        }
        let version = word(at::VERSION) as u32;
        if version != at::VERSION_NOW {
            return Err(version);
        }
        let (limit, least_free) = (word(at::LIMIT), word(at::LEAST_FREE));
        let shared = word(at::SHARED) != 0;
        Ok(Some(Self { limit, least_free, parts: word(at::PARTS), shared }))
    }
}

/// Reads the settings of a folder.
///
/// # Errors
///
/// Returns the error of the system if there is a file that cannot be read, and `Error::Version` if
/// a newer version of this crate wrote it.
pub(crate) fn load(folder: &Folder) -> Result<Stored> {
    let path = || folder.path().join(SETTINGS_NAME);
    let file = match folder.open_file(SETTINGS_NAME, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(of_version_1(folder).map_or(Stored::Absent, Stored::Good)),
        Err(Errno::LOOP | Errno::NXIO) => return Ok(Stored::Damaged),
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
        Ok(found) => Ok(found.map_or(Stored::Damaged, Stored::Good)),
        Err(found) => Err(Error::Version { path: path(), expected: at::VERSION_NOW, found }),
    }
}

/// Replaces the settings of a folder: they are on the disk when this returns.
pub(crate) fn store(folder: &Folder, settings: Settings) -> Result<()> {
    folder.replace(SETTINGS_NEW, SETTINGS_NAME, &settings.encode())
}

/// Returns the limits of an index of version 1, which had them instead of a file.
fn of_version_1(folder: &Folder) -> Option<Settings> {
    let mut bytes = [0; 120];
    let mut file = folder.open_file(INDEX_NAME, OFlags::RDONLY).ok()?;
    file.read_exact(&mut bytes).ok()?;
    let word = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
    let mut checked = [0x5A; 24];
    checked[..16].copy_from_slice(&bytes[96..112]);
    let of_version_1 = bytes[..12] == *b"NUTINDEX\x01\0\0\0" && word(112)? == xxh3_64(&checked);
    let (limit, least_free) = (word(96)?, word(104)?);
    of_version_1.then_some(Settings { limit, least_free, ..Settings::DEFAULT })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { limit: 64 << 20, least_free: 7, parts: 9, shared: true };

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
