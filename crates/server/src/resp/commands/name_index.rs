//! A hash table from names to commands, built at compile time.

use super::{Command, Found};

/// The number of slots. Less than half are used.
const SLOTS: usize = 512;
/// Multiplier that mixes the bits of a name into the upper bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A name of up to sixteen bytes in lower case: its first and last eight bytes, which may overlap,
/// and its length. This is unique.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    first: u64,
    last: u64,
    len: usize,
}

impl Name {
    /// Returns the name in these bytes, unless it is too long.
    #[inline]
    const fn new(bytes: &[u8]) -> Option<Self> {
        let (first, last) = match bytes.len() {
            8..=16 => match (bytes.first_chunk(), bytes.last_chunk()) {
                (Some(first), Some(last)) => {
                    (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
                }
                _ => return None,
            },
            4..=7 => match (bytes.first_chunk(), bytes.last_chunk()) {
                (Some(first), Some(last)) => {
                    let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
                    (first as u64 | (last as u64) << 32, 0)
                }
                _ => return None,
            },
            1..=3 => {
                let [first, middle, last] =
                    [bytes[0], bytes[bytes.len() / 2], bytes[bytes.len() - 1]];
                (first as u64 | (middle as u64) << 8 | (last as u64) << 16, 0)
            }
            _ => return None,
        };
        Some(Self { first: lower(first), last: lower(last), len: bytes.len() })
    }

    /// Returns the first slot to examine.
    #[inline]
    const fn slot(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(32) ^ self.len as u64).wrapping_mul(SPREAD);
        (mixed >> (64 - SLOTS.ilog2())) as usize
    }
}

/// Converts the letters among eight bytes to lower case.
#[inline]
const fn lower(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low = bytes & (EACH * 0x7f);
    // The highest bit of each byte is set from A on, and from the byte after Z on.
    let letter_on = low + EACH * (0x80 - b'A' as u64);
    let behind = low + EACH * (0x80 - (b'Z' as u64 + 1));
    bytes | (letter_on & !behind & !bytes & (EACH * 0x80)) >> 2
}

#[derive(Clone, Copy)]
struct Entry {
    name: Name,
    command: Option<&'static Command>,
    /// The number of the command.
    number: usize,
}

/// All commands by name.
pub(crate) struct Index([Entry; SLOTS]);

impl Index {
    /// Builds the index of these tables. Errors in them fail the compilation.
    #[expect(clippy::large_stack_arrays, reason = "it is made as it compiles")]
    pub(crate) const fn new(tables: &'static [&'static [Command]]) -> Self {
        let name = Name { first: 0, last: 0, len: 0 };
        let empty = Entry { name, command: None, number: 0 };
        let mut index = Self([empty; SLOTS]);
        let (mut table, mut taken) = (0, 0);
        while table < tables.len() {
            let mut at = 0;
            while at < tables[table].len() {
                index.add(&tables[table][at], taken);
                taken += 1;
                at += 1;
            }
            table += 1;
        }
        assert!(taken < SLOTS / 2, "more slots are needed");
        index
    }

    const fn add(&mut self, command: &'static Command, number: usize) {
        let Some(name) = Name::new(command.name.as_bytes()) else {
            panic!("the name of a command has 1 to 16 bytes");
        };
        let mut slot = name.slot();
        while self.0[slot].command.is_some() {
            slot = (slot + 1) % SLOTS;
        }
        self.0[slot] = Entry { name, command: Some(command), number };
    }

    /// Returns the command with this name, in any case, and its number.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<Found> {
        let name = Name::new(name)?;
        let mut slot = name.slot();
        loop {
            let entry = &self.0[slot];
            let command = entry.command?;
            if entry.name == name {
                return Some(Found { command, number: entry.number });
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{all, find};

    #[test]
    fn every_command_is_found_in_any_case_and_nothing_else_is() {
        for command in all() {
            let name = command.name;
            for spelt in
                [name.to_owned(), name.to_uppercase(), name[..1].to_uppercase() + &name[1..]]
            {
                let found = find(spelt.as_bytes()).map(|found| found.name);
                assert_eq!(found, Some(name), "{spelt}");
            }
            for at in 0..name.len() {
                for byte in 0..=u8::MAX {
                    let mut other = name.as_bytes().to_vec();
                    other[at] = byte;
                    let is_one = all().any(|c| c.name.as_bytes().eq_ignore_ascii_case(&other));
                    assert_eq!(find(&other).is_some(), is_one, "{other:?}");
                }
            }
        }
        for name in [&b""[..], b"\0", b"ge", b"gett", b"ggett", b"incrbyfloatincrbyfloat"] {
            assert!(find(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn no_two_commands_have_the_same_name() {
        let mut names: Vec<_> = all().map(|command| command.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| *name == name.to_lowercase()));
    }
}
