//! Groups of keys, whose values are assumed to be similar.
//!
//! The group of a key is its prefix up to the last of its first two separators, which are
//! `:` `/` `.` and `|`. Parts that contain a digit are replaced by `*`, because they are usually
//! ids:
//!
//! | key | group |
//! |---|---|
//! | `user:123:profile` | `user:*:` |
//! | `user:456` | `user:` |
//! | `session/9f3a-77` | `session/` |
//! | `v2:article:77:body` | `*:article:` |
//! | `counter` | the rest |
//!
//! Keys without a separator, and keys whose first two separators are not within the first 64 bytes,
//! use what precedes; without any separator they belong to the rest.

/// Maximum length of the part of a key that determines its group, in bytes.
pub const MAX_PREFIX_LEN: usize = 64;
/// Number of separators that determine the group.
const SEPARATORS: usize = 2;
/// What replaces a part that contains a digit.
const ID: u8 = b'*';

/// The identifier of a group: a hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(u64);

impl GroupId {
    /// The group of keys without a separator, and of groups beyond the maximum number.
    pub(crate) const REST: Self = Self(0);

    /// Returns the group of a key.
    #[inline]
    pub(crate) fn of(key: &[u8]) -> Self {
        let mut hash = Fnv::new();
        if visit(key, |byte| hash.add(byte)) { Self(hash.0 | 1) } else { Self::REST }
    }
}

/// Returns the name of the group of a key, such as `user:*:`. Empty for the rest.
///
/// # Examples
///
/// ```
/// assert_eq!(nuthatch_compress::group_name(b"user:123:profile"), b"user:*:");
/// assert_eq!(nuthatch_compress::group_name(b"user:456"), b"user:");
/// assert_eq!(nuthatch_compress::group_name(b"counter"), b"");
/// ```
pub fn group_name(key: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    visit(key, |byte| name.push(byte));
    name
}

/// Calls `add` with each byte of the name of the group of a key. Returns whether the key has a
/// separator.
#[inline]
fn visit(key: &[u8], mut add: impl FnMut(u8)) -> bool {
    let key = &key[..key.len().min(MAX_PREFIX_LEN)];
    let mut start = 0;
    for _ in 0..SEPARATORS {
        let mut is_id = false;
        let end = key[start..].iter().position(|byte| {
            is_id |= byte.is_ascii_digit();
            matches!(byte, b':' | b'/' | b'.' | b'|')
        });
        let Some(len) = end else { break };
        let end = start + len;
        if is_id {
            add(ID);
        } else {
            key[start..end].iter().for_each(|byte| add(*byte));
        }
        add(key[end]);
        start = end + 1;
    }
    start > 0
}

/// The hash function FNV-1a with 64 bits.
///
/// Source: draft-eastlake-fnv, "The FNV Non-Cryptographic Hash Algorithm". Names that collide share
/// a dictionary, which costs compression and no correctness.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_group_of_their_first_two_separators() {
        let long = [&b"a"[..], &[b'b'; 100], b":c"].concat();
        let cut = [&b"a:"[..], &[b'b'; 100], b":c"].concat();
        for (key, name) in [
            (&b"user:123:profile"[..], &b"user:*:"[..]),
            (b"user:456:profile", b"user:*:"),
            (b"user:456", b"user:"),
            (b"user:", b"user:"),
            (b"session/9f3a-77", b"session/"),
            (b"v2:article:77:body", b"*:article:"),
            (b"img.thumb|7", b"img.thumb|"),
            (b"::x", b"::"),
            (b"counter", b""),
            (b"12345", b""),
            (b"", b""),
            (b"\xff\0:\x01", b"\xff\0:"),
            (&long, b""),
            (&cut, b"a:"),
        ] {
            assert_eq!(group_name(key), name, "{}", key.escape_ascii());
            assert_eq!(GroupId::of(key) == GroupId::REST, name.is_empty());
        }
    }

    #[test]
    fn names_and_ids_correspond() {
        let keys: [&[u8]; 6] = [b"a:1", b"a:2:x", b"a:x:1", b"b:1", b"b/1", b"a:9:y"];
        for one in keys {
            for other in keys {
                let is_same = group_name(one) == group_name(other);
                assert_eq!(GroupId::of(one) == GroupId::of(other), is_same);
            }
        }
    }
}
