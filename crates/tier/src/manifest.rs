//! The manifest of a folder: one block, replaced as a whole.

use crate::checksum::checksum;
use crate::fields::{half, put_half, put_word, word};
use crate::layout::manifest as at;
use crate::layout::{BLOCK, VERSION};
use crate::state::FolderState;

/// The state of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Closed,
    LostPower,
    Outdated,
}

/// The content of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) state: State,
    /// A random number, which is also in the header of each item file.
    pub(crate) salt: u64,
    /// The seed of the hash of keys.
    pub(crate) hash_seed: u64,
    /// Identifies the boot of the system during which the folder was opened.
    pub(crate) boot: u64,
}

/// Why bytes are not a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestError {
    Damaged(&'static str),
    Version(u32),
}

impl Manifest {
    /// Returns the state in which the last process left the folder, if the boot of the running
    /// system is `boot`.
    pub(crate) fn folder_state(self, boot: u64) -> FolderState {
        match self.state {
            State::Open if self.boot == boot => FolderState::NotClosed,
            State::Open | State::LostPower => FolderState::LostPower,
            State::Closed => FolderState::Closed,
            State::Outdated => FolderState::Outdated,
        }
    }

    pub(crate) fn encode(self) -> [u8; BLOCK] {
        let mut bytes = [0; BLOCK];
        bytes[at::MAGIC_AT..at::VERSION_AT].copy_from_slice(at::MAGIC);
        put_half(&mut bytes, at::VERSION_AT, VERSION);
        let state = match self.state {
            State::Open => at::OPEN,
            State::Closed => at::CLOSED,
            State::LostPower => at::LOST_POWER,
            State::Outdated => at::OUTDATED,
        };
        put_half(&mut bytes, at::STATE, state);
        put_word(&mut bytes, at::SALT, self.salt);
        put_word(&mut bytes, at::HASH_SEED, self.hash_seed);
        put_word(&mut bytes, at::BOOT, self.boot);
        let check = checksum(&bytes[..at::CHECK], 0);
        put_word(&mut bytes, at::CHECK, check);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() != BLOCK {
            return Err(ManifestError::Damaged("another length than 4096 bytes"));
        }
        if bytes[at::MAGIC_AT..at::VERSION_AT] != *at::MAGIC {
            return Err(ManifestError::Damaged("another magic number"));
        }
        if word(bytes, at::CHECK) != checksum(&bytes[..at::CHECK], 0) {
            return Err(ManifestError::Damaged("another checksum"));
        }
        let version = half(bytes, at::VERSION_AT);
        if version != VERSION {
            return Err(ManifestError::Version(version));
        }
        let state = match half(bytes, at::STATE) {
            at::OPEN => State::Open,
            at::CLOSED => State::Closed,
            at::LOST_POWER => State::LostPower,
            at::OUTDATED => State::Outdated,
            _ => return Err(ManifestError::Damaged("an unknown state")),
        };
        let (salt, hash_seed) = (word(bytes, at::SALT), word(bytes, at::HASH_SEED));
        Ok(Self { state, salt, hash_seed, boot: word(bytes, at::BOOT) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_of_the_manifest_is_found() {
        for state in [State::Open, State::Closed, State::LostPower, State::Outdated] {
            let manifest = Manifest { state, salt: 1, hash_seed: 2, boot: 3 };
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
        let bytes = Manifest { state: State::Open, salt: 1, hash_seed: 2, boot: 3 }.encode();
        for bit in 0..BLOCK * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&flipped).is_err(), "bit {bit}");
        }
        assert!(Manifest::decode(&bytes[1..]).is_err());
    }

    #[test]
    fn another_version_is_reported() {
        let mut bytes = Manifest { state: State::Open, salt: 1, hash_seed: 2, boot: 3 }.encode();
        put_half(&mut bytes, at::VERSION_AT, 9);
        let check = checksum(&bytes[..at::CHECK], 0);
        put_word(&mut bytes, at::CHECK, check);
        assert_eq!(Manifest::decode(&bytes), Err(ManifestError::Version(9)));
    }
}
