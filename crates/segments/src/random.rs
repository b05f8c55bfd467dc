//! Random numbers, and a number that identifies the boot of the machine.

use crate::checksum::checksum;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// Returns a random number, for salts. It comes from the seeds of hash maps in the standard
/// library, which differ between processes and calls.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns a number that stays the same until the machine restarts. If the system does not report
/// one, the number is random, and all segments of other processes count as written before the
/// restart.
pub(crate) fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let id = std::fs::read("/proc/sys/kernel/random/boot_id");
        id.map_or_else(|_| random(), |id| checksum(&id))
    })
}
