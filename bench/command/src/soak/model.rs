//! What the client knows about each key, and the check of every value that it reads.

use std::io::Write;

/// The longest value in bytes.
pub(super) const MAX_VALUE_BYTES: u64 = 128 << 10;

/// Mean length of a value in bytes, which determines the number of keys.
pub(super) const MEAN_VALUE_BYTES: u64 = 2300;

/// Maximum difference in milliseconds between the clocks of client and server, including the
/// resolution of the server's clock.
const CLOCK_SLACK_MS: u64 = 200;

/// The known state of a key. Versions count from 1.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The lowest version that may be read. After a removal, it is above `newest`.
    oldest_valid: u32,
    /// The version of the last write that was sent.
    newest: u32,
    /// The time at which `oldest_valid` expires at the latest, in milliseconds since the start, or
    /// 0 if it does not expire.
    deadline_ms: u64,
}

/// A request whose reply has not been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Get { key: u32 },
    Set { key: u32, version: u32, ttl_ms: u64 },
    Remove { key: u32 },
}

/// The states of all keys.
pub(super) struct Model(Vec<Known>);

impl Model {
    pub(super) fn new(keys: u32) -> Self {
        Self(vec![Known::default(); keys as usize])
    }

    /// Returns the version of the next write of a key, which is about to be sent.
    pub(super) fn next_version(&mut self, key: u32) -> u32 {
        let known = &mut self.0[key as usize];
        known.newest += 1;
        known.newest
    }

    /// Records that the server has acknowledged a write, at a time since the start.
    pub(super) fn stored(&mut self, key: u32, version: u32, ttl_ms: u64, now_ms: u64) {
        let known = &mut self.0[key as usize];
        known.oldest_valid = version;
        known.deadline_ms = if ttl_ms == 0 { 0 } else { now_ms + ttl_ms };
    }

    /// Records that the server has acknowledged a removal.
    pub(super) fn removed(&mut self, key: u32, sent_newest: u32) {
        let known = &mut self.0[key as usize];
        known.oldest_valid = sent_newest + 1;
        known.deadline_ms = 0;
    }

    /// Returns the version of the last write of a key that was sent.
    pub(super) fn newest(&self, key: u32) -> u32 {
        self.0[key as usize].newest
    }

    /// Checks a value that was read by a request sent at `sent_ms`.
    ///
    /// # Errors
    /// Describes the value if it is not one that the server may return.
    pub(super) fn check(&mut self, key: u32, value: &[u8], sent_ms: u64) -> Result<(), String> {
        let name = key_text(key);
        let known = &mut self.0[key as usize];
        let start = String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
        let version = start.strip_prefix(&name).and_then(|rest| rest.get(1..11)?.parse().ok());
        let Some(version) = version else {
            return Err(format!("{name}: the value begins with {start:?}, which is not its own"));
        };
        let mut expected = Vec::new();
        append_value(key, version, &mut expected);
        if value != expected {
            let len = value.len();
            return Err(format!("{name}: version {version} has wrong bytes; its length is {len}"));
        }
        let Known { oldest_valid, newest, deadline_ms } = *known;
        if version < oldest_valid || version > newest {
            return Err(format!(
                "{name}: version {version} was read; it was overwritten or removed, since versions \
                 from {oldest_valid} to {newest} are valid"
            ));
        }
        let is_acknowledged = version == oldest_valid;
        if is_acknowledged && deadline_ms > 0 && sent_ms > deadline_ms + CLOCK_SLACK_MS {
            let late = sent_ms - deadline_ms;
            return Err(format!("{name}: version {version} was read {late} ms after it expired"));
        }
        if !is_acknowledged {
            // A write without an acknowledgement is visible, so older versions are not valid.
            (known.oldest_valid, known.deadline_ms) = (version, 0);
        }
        Ok(())
    }
}

/// Returns the text of a key.
pub(super) fn key_text(key: u32) -> String {
    format!("key:{key:010}")
}

/// Appends the value of a version of a key: both as text, and then bytes that depend on them.
pub(super) fn append_value(key: u32, version: u32, out: &mut Vec<u8>) {
    let start = out.len();
    // Writing to memory cannot fail.
    let _ = write!(out, "{}:{version:010}:", key_text(key));
    let mut word = word_of(key, version);
    let end = start + value_len(key, version);
    while out.len() < end {
        word = mixed(word);
        let len = (end - out.len()).min(8);
        out.extend_from_slice(&word.to_le_bytes()[..len]);
    }
}

/// Returns the length of a value: mostly short, with a mean of about [`MEAN_VALUE_BYTES`].
pub(super) fn value_len(key: u32, version: u32) -> usize {
    let word = word_of(key, version);
    let (class, word) = (word % 1000, word / 1000);
    let (min, max) = match class {
        0..700 => (64, 256),
        700..900 => (256, 2 << 10),
        900..990 => (2 << 10, 20 << 10),
        _ => (20 << 10, MAX_VALUE_BYTES),
    };
    (min + word % (max - min + 1)) as usize
}

fn word_of(key: u32, version: u32) -> u64 {
    mixed(u64::from(key) << 32 | u64::from(version))
}

/// Returns a word that depends on all bits of another one (the finalizer of `SplitMix64`).
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: u32, version: u32) -> Vec<u8> {
        let mut value = Vec::new();
        append_value(key, version, &mut value);
        value
    }

    #[test]
    fn only_acknowledged_and_newer_versions_are_valid() {
        let mut model = Model::new(10);
        assert_eq!(model.next_version(7), 1);
        model.stored(7, 1, 0, 0);
        assert_eq!(model.next_version(7), 2);
        // The second write is not acknowledged, so both versions are valid until it is read.
        assert_eq!(model.check(7, &value(7, 1), 0), Ok(()));
        assert_eq!(model.check(7, &value(7, 2), 0), Ok(()));
        assert!(model.check(7, &value(7, 1), 0).is_err_and(|e| e.contains("overwritten")));
        model.removed(7, 2);
        assert!(model.check(7, &value(7, 2), 0).is_err_and(|e| e.contains("removed")));
    }

    #[test]
    fn wrong_and_expired_values_are_errors() {
        let mut model = Model::new(10);
        let version = model.next_version(3);
        model.stored(3, version, 50, 1000);
        assert_eq!(model.check(3, &value(3, 1), 1049), Ok(()));
        let late = 1051 + CLOCK_SLACK_MS;
        assert!(model.check(3, &value(3, 1), late).is_err_and(|e| e.contains("expired")));
        assert!(model.check(3, &value(4, 1), 0).is_err_and(|e| e.contains("not its own")));
        let mut wrong = value(3, 1);
        *wrong.last_mut().expect("a byte") ^= 1;
        assert!(model.check(3, &wrong, 0).is_err_and(|e| e.contains("wrong bytes")));
        assert!(model.check(3, b"", 0).is_err());
    }

    #[test]
    fn the_mean_length_is_about_as_stated() {
        let bytes: usize = (0..20_000).map(|key| value(key, 1).len()).sum();
        let mean = bytes as u64 / 20_000;
        assert!((MEAN_VALUE_BYTES * 9 / 10..=MEAN_VALUE_BYTES * 11 / 10).contains(&mean), "{mean}");
    }
}
