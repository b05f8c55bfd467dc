//! The flags of a meta request: letters, some with a token.

use super::error::Error;
use super::words::{Words, is_plain, plain_len, signed, unsigned, unsigned_32};

/// Maximum bytes of an opaque token, with its letter.
const MAX_OPAQUE_LEN: usize = 32;

/// Valid letters. `P` and `L` are for proxies and have no effect. As in memcached, a letter without
/// meaning for a command is ignored.
const KNOWN: u64 = letters(b"bcfhklOqstuvxCDEFIJLMNPRT");

/// The flags of a request. Numbers are checked once, and parsed again when they are used, so that
/// requests stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags<'b> {
    /// The flags as received. Replies return them in this order.
    text: &'b [u8],
    seen: u64,
}

impl<'b> Flags<'b> {
    /// Parses the words after the key, and in `ms` after the length of the value.
    pub(crate) fn parse(text: &'b [u8]) -> Result<Self, Error> {
        let (flags, rest) = Self::parse_plain(text)?;
        if rest.is_empty() { Ok(flags) } else { Err(Error::BadFormat) }
    }

    /// Parses words up to the first control character, and returns the rest, too.
    #[inline]
    pub(crate) fn parse_plain(text: &'b [u8]) -> Result<(Self, &'b [u8]), Error> {
        let mut flags = Self { text, seen: 0 };
        let mut rest = text;
        while let [first, after @ ..] = rest {
            if *first == b' ' {
                rest = after;
            } else if is_plain(*first) {
                let (token, next) = after.split_at(plain_len(after));
                flags.add(*first, token)?;
                rest = next;
            } else {
                break;
            }
        }
        flags.text = &text[..text.len() - rest.len()];
        Ok((flags, rest))
    }

    #[inline]
    fn add(&mut self, letter: u8, token: &[u8]) -> Result<(), Error> {
        let bit = bit(letter);
        if bit & KNOWN == 0 {
            return Err(Error::InvalidFlag);
        }
        if bit & self.seen != 0 {
            return Err(Error::DuplicateFlag);
        }
        self.seen |= bit;
        match letter {
            b'T' | b'N' | b'R' => check(signed(token), Error::BadToken),
            b'C' | b'E' => check(unsigned(token), Error::BadToken),
            b'F' => check(unsigned_32(token), Error::BadFormat),
            b'J' => check(unsigned(token), Error::BadInitial),
            b'D' => check(unsigned(token), Error::BadMetaDelta),
            b'O' if token.len() >= MAX_OPAQUE_LEN => Err(Error::OpaqueTooLong),
            b'M' if token.len() != 1 => Err(Error::BadModeLen),
            _ => Ok(()),
        }
    }

    /// Returns whether the flag with this letter is set.
    #[inline]
    pub fn has(&self, letter: u8) -> bool {
        self.seen & bit(letter) != 0
    }

    /// Returns whether usual results are not replied (`q`): see [`crate::memcache::meta_reply`].
    pub fn quiet(&self) -> bool {
        self.has(b'q')
    }

    /// Returns whether the value is returned (`v`).
    pub fn value(&self) -> bool {
        self.has(b'v')
    }

    /// Returns whether the request does not count as a read of the item (`u`).
    pub fn no_bump(&self) -> bool {
        self.has(b'u')
    }

    /// Returns whether items are marked as stale (`I`): `md` marks the item instead of removing it,
    /// and `ms` with a CAS number stores an older value as stale.
    pub fn invalidate(&self) -> bool {
        self.has(b'I')
    }

    /// Returns whether `md` keeps the item and removes its value and client flags (`x`).
    pub fn remove_value(&self) -> bool {
        self.has(b'x')
    }

    /// Returns the new expiry of the item (`T`).
    pub fn exptime(&self) -> Option<i64> {
        signed(self.token(b'T')?)
    }

    /// Returns the expiry of the item that is created if the key is missing (`N`).
    pub fn vivify(&self) -> Option<i64> {
        signed(self.token(b'N')?)
    }

    /// Returns the time of a recache (`R`): if the item expires earlier, one client is chosen to
    /// renew it.
    pub fn recache(&self) -> Option<i64> {
        signed(self.token(b'R')?)
    }

    /// Returns the CAS number that the item must have (`C`).
    pub fn compare_cas(&self) -> Option<u64> {
        unsigned(self.token(b'C')?)
    }

    /// Returns the new CAS number of the item (`E`).
    pub fn new_cas(&self) -> Option<u64> {
        unsigned(self.token(b'E')?)
    }

    /// Returns the client's flags to store with the value (`F`), or 0.
    pub fn client_flags(&self) -> u32 {
        self.token(b'F').and_then(unsigned_32).unwrap_or(0)
    }

    /// Returns the initial value of the number that `ma` creates (`J`), or 0.
    pub fn initial(&self) -> u64 {
        self.token(b'J').and_then(unsigned).unwrap_or(0)
    }

    /// Returns the delta of `ma` (`D`), or 1.
    pub fn delta(&self) -> u64 {
        self.token(b'D').and_then(unsigned).unwrap_or(1)
    }

    /// Returns the letter of the mode (`M`).
    pub(crate) fn mode(&self) -> Option<u8> {
        self.token(b'M')?.first().copied()
    }

    /// Returns the text after the letter of a flag.
    fn token(&self, letter: u8) -> Option<&'b [u8]> {
        if !self.has(letter) {
            return None;
        }
        self.in_order().find_map(|flag| flag.strip_prefix(&[letter]))
    }

    /// Returns the flags in the order of the request, each with its letter and token.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &'b [u8]> {
        Words { rest: self.text }
    }
}

fn check<N>(number: Option<N>, error: Error) -> Result<(), Error> {
    number.map(drop).ok_or(error)
}

/// Returns the bit of a letter in a set of 64, or 0 for other bytes.
#[inline]
const fn bit(letter: u8) -> u64 {
    if letter.is_ascii_alphabetic() { 1 << (letter - b'A') } else { 0 }
}

const fn letters(all: &[u8]) -> u64 {
    let (mut set, mut i) = (0, 0);
    while i < all.len() {
        set |= bit(all[i]);
        i += 1;
    }
    set
}
