//! The flags of a meta request: a letter each, some with a token after it.

use super::error::Error;
use super::words::{Words, is_plain, plain_len, signed, unsigned, unsigned_32};

/// Bytes of the longest opaque token, its letter included.
const MAX_OPAQUE_LEN: usize = 32;

/// Letters there are. `P` and `L` are for proxies, and mean nothing here; a letter that means
/// nothing to a command is ignored there, as in memcached.
const KNOWN: u64 = letters(b"bcfhklOqstuvxCDEFIJLMNPRT");

/// The flags of a request: the text itself, and what is in it. A number is checked once, and read
/// again by who wants it, so that requests stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags<'b> {
    /// The flags as they came: their order is the order of what is returned.
    text: &'b [u8],
    seen: u64,
}

impl<'b> Flags<'b> {
    /// Takes the words after the key, and after the length of the value in `ms`.
    pub(crate) fn parse(text: &'b [u8]) -> Result<Self, Error> {
        let (flags, rest) = Self::parse_plain(text)?;
        if rest.is_empty() { Ok(flags) } else { Err(Error::BadFormat) }
    }

    /// Takes words up to what is neither plain nor a space, and returns that too.
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

    /// Whether a flag is there, by its letter.
    #[inline]
    pub fn has(&self, letter: u8) -> bool {
        self.seen & bit(letter) != 0
    }

    /// `q`: answer only what is not the rule.
    pub fn quiet(&self) -> bool {
        self.has(b'q')
    }

    /// `v`: return the value.
    pub fn value(&self) -> bool {
        self.has(b'v')
    }

    /// `u`: the request is no use of the item that would keep it from eviction.
    pub fn no_bump(&self) -> bool {
        self.has(b'u')
    }

    /// `I`: with `md` mark the item as stale instead of removing it; with `ms` and a number to
    /// compare, store what is older than the item all the same, and mark it as stale.
    pub fn invalidate(&self) -> bool {
        self.has(b'I')
    }

    /// `x`: with `md` remove the value and the client's flags, and keep the item.
    pub fn remove_value(&self) -> bool {
        self.has(b'x')
    }

    /// `T`: when the item expires from now on.
    pub fn exptime(&self) -> Option<i64> {
        signed(self.token(b'T')?)
    }

    /// `N`: make an item where there is none, with this time.
    pub fn vivify(&self) -> Option<i64> {
        signed(self.token(b'N')?)
    }

    /// `R`: the client wins the right to renew an item that expires before this time.
    pub fn recache(&self) -> Option<i64> {
        signed(self.token(b'R')?)
    }

    /// `C`: change the item only if it has this number.
    pub fn compare_cas(&self) -> Option<u64> {
        unsigned(self.token(b'C')?)
    }

    /// `E`: the number of the item from now on.
    pub fn new_cas(&self) -> Option<u64> {
        unsigned(self.token(b'E')?)
    }

    /// `F`: the number that the client keeps with the value; 0 without.
    pub fn client_flags(&self) -> u32 {
        self.token(b'F').and_then(unsigned_32).unwrap_or(0)
    }

    /// `J`: the first value of a number that `ma` makes; 0 without.
    pub fn initial(&self) -> u64 {
        self.token(b'J').and_then(unsigned).unwrap_or(0)
    }

    /// `D`: by how much `ma` counts; 1 without.
    pub fn delta(&self) -> u64 {
        self.token(b'D').and_then(unsigned).unwrap_or(1)
    }

    /// `M`: the letter of a mode.
    pub(crate) fn mode(&self) -> Option<u8> {
        self.token(b'M')?.first().copied()
    }

    /// What follows the letter of a flag.
    fn token(&self, letter: u8) -> Option<&'b [u8]> {
        if !self.has(letter) {
            return None;
        }
        self.in_order().find_map(|flag| flag.strip_prefix(&[letter]))
    }

    /// The flags in the order of the request: each with its letter and its token.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &'b [u8]> {
        Words { rest: self.text }
    }
}

fn check<N>(number: Option<N>, error: Error) -> Result<(), Error> {
    number.map(drop).ok_or(error)
}

/// The place of a letter among 64, or none for what is no letter.
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
