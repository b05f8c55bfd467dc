//! Encoding of requests, and the first bytes of replies.

use crate::keys::{KEY_BYTES, KEY_PREFIX};
use crate::replies::{Head, Outcome};
use std::fmt;
use std::str::FromStr;

/// A wire protocol of cache servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The protocol of Redis.
    Resp,
    /// The text protocol of memcached.
    Memcache,
    /// The meta protocol of memcached.
    Meta,
    /// The binary protocol of mrcache. Replies begin with a length of four bytes.
    Mrcache,
    /// The text protocol of poor-man's-cache.
    Pmc,
}

/// Every protocol with its name.
const NAMES: [(Protocol, &str); 5] = [
    (Protocol::Resp, "resp"),
    (Protocol::Memcache, "memcache"),
    (Protocol::Meta, "meta"),
    (Protocol::Mrcache, "mrcache"),
    (Protocol::Pmc, "pmc"),
];

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(_, name)| *name == text);
        let names = NAMES.map(|(_, name)| name).join(", ");
        found.map(|(protocol, _)| *protocol).ok_or_else(|| format!("expected one of {names}"))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(protocol, _)| protocol == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// The byte that ends a message of poor-man's-cache.
const PMC_END: u8 = 0x1F;

impl Protocol {
    /// Returns the maximum length of a value, in bytes.
    pub(crate) fn max_value_bytes(self) -> usize {
        match self {
            Self::Mrcache => (1 << 24) - 1,
            _ => 1 << 29,
        }
    }

    /// Appends a request for the value of a key.
    pub(crate) fn get(self, key: &[u8; KEY_BYTES], out: &mut Vec<u8>) {
        let (before, after): (&[u8], &[u8]) = match self {
            Self::Resp => (b"*2\r\n$3\r\nGET\r\n$16\r\n", b"\r\n"),
            Self::Memcache => (b"get ", b"\r\n"),
            Self::Meta => (b"mg ", b" v\r\n"),
            Self::Mrcache => (&[0, 1, KEY_BYTES as u8, 0], b""),
            Self::Pmc => (b"GET ", &[PMC_END]),
        };
        for part in [before, key, after] {
            out.extend_from_slice(part);
        }
    }

    /// Appends a request that stores a value of `size` bytes, which `value` appends.
    pub(crate) fn set(
        self,
        key: &[u8; KEY_BYTES],
        size: usize,
        value: impl FnOnce(&mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        let key_text = String::from_utf8_lossy(key);
        match self {
            Self::Resp => {
                let head = format!("*3\r\n$3\r\nSET\r\n$16\r\n{key_text}\r\n${size}\r\n");
                out.extend_from_slice(head.as_bytes());
            }
            Self::Memcache => {
                out.extend_from_slice(format!("set {key_text} 0 0 {size}\r\n").as_bytes());
            }
            Self::Meta => out.extend_from_slice(format!("ms {key_text} {size}\r\n").as_bytes()),
            Self::Mrcache => {
                out.extend_from_slice(&[0, 2, KEY_BYTES as u8, 0]);
                out.extend_from_slice(&(size as u32).to_le_bytes());
                out.extend_from_slice(key);
            }
            Self::Pmc => out.extend_from_slice(format!("SET {key_text} ").as_bytes()),
        }
        value(out);
        match self {
            Self::Resp | Self::Memcache | Self::Meta => out.extend_from_slice(b"\r\n"),
            Self::Mrcache => {}
            Self::Pmc => out.push(PMC_END),
        }
    }

    /// Returns whether the server acknowledges a stored value.
    pub(crate) fn answers_sets(self) -> bool {
        self != Self::Mrcache
    }

    /// Returns the possible heads of a reply to a get of a value of `size` bytes. The hit comes
    /// first.
    pub(crate) fn get_heads(self, size: usize) -> Vec<Head> {
        let hit = |head: &[u8], rest| Head::new(head, rest, Outcome::Hit);
        let miss = |head: &[u8]| Head::new(head, 0, Outcome::Miss);
        match self {
            Self::Resp => {
                let head = hit(format!("${size}\r\n").as_bytes(), size + 2);
                vec![head, miss(b"$-1\r\n"), miss(b"_\r\n")]
            }
            Self::Memcache => {
                // This part of the head is common to all keys. Key, flags and size follow.
                let head = b"VALUE key:";
                let whole = format!("VALUE {} 0 {size}\r\n\r\nEND\r\n", "k".repeat(KEY_BYTES));
                vec![hit(head, whole.len() + size - head.len()), miss(b"END\r\n")]
            }
            Self::Meta => {
                vec![hit(format!("VA {size}\r\n").as_bytes(), size + 2), miss(b"EN\r\n")]
            }
            Self::Mrcache => vec![hit(&(size as u32).to_le_bytes(), size), miss(&[0; 4])],
            Self::Pmc => {
                // The protocol sends no length, so the head of a hit is the common prefix of all
                // values.
                let head = &KEY_PREFIX[..size.min(KEY_PREFIX.len())];
                vec![hit(head, size + 1 - head.len()), miss(b"(nil)\x1F")]
            }
        }
    }

    /// Returns the possible heads of a reply to a set. Empty if the protocol has no such reply.
    pub(crate) fn set_heads(self) -> Vec<Head> {
        let text: &[u8] = match self {
            Self::Resp => b"+OK\r\n",
            Self::Memcache => b"STORED\r\n",
            Self::Meta => b"HD\r\n",
            Self::Mrcache => return Vec::new(),
            Self::Pmc => b"OK\x1F",
        };
        vec![Head::new(text, 0, Outcome::Stored)]
    }
}
