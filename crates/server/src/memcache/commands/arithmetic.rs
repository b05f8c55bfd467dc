//! Increments and decrements, for text and meta requests.

use super::refusal::{Refusal, Result};
use super::rewrite::write;
use super::time::End;
use crate::memcache::{Direction, Error};
use crate::state::values::{self, Place};
use nuthatch_cache::{Item, Write};

/// Digits of the maximum number.
const MAX_DIGITS: usize = 20;

/// An increment or decrement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) direction: Direction,
    pub(crate) delta: u64,
    /// The new expiry; `None` keeps the current one.
    pub(crate) end: Option<End>,
    /// The CAS number that the item must have.
    pub(crate) compare: Option<u64>,
    /// The new CAS number of the item, if it must have one at once.
    pub(crate) cas: Option<u64>,
    /// Number and expiry of the item that is created if the key is missing.
    pub(crate) vivify: Option<(u64, End)>,
}

/// The result of an increment or decrement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// The new number and its expiry.
    To { number: u64, end: End },
    /// The key is missing.
    NotFound,
    /// The item has another CAS number.
    Exists,
}

impl Counting<'_> {
    /// Performs the operation.
    pub(crate) fn count(&self, place: Place<'_>) -> Result<Counted> {
        values::update(place, self.key, |item, value| match self.change(item) {
            Ok((Counted::To { number, end }, flags, marks)) => {
                value.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                let write: Write<'_> = write(end, self.cas).flags(flags).protocol_bits(marks);
                (Some(write), Ok(Counted::To { number, end }))
            }
            Ok((nothing, ..)) => (None, Ok(nothing)),
            Err(refusal) => (None, Err(refusal)),
        })?
    }

    /// Returns the changed item, with its flags and protocol bits.
    fn change(&self, item: Option<Item<'_>>) -> Result<(Counted, u32, u8)> {
        let Some(item) = item else {
            let made = self.vivify.map(|(number, end)| Counted::To { number, end });
            return Ok((made.unwrap_or(Counted::NotFound), 0, 0));
        };
        // In the order of memcached, for requests with two errors.
        if item.value().is_empty() {
            return Err(Refusal::Reply(Error::NotNumeric));
        }
        // CAS number 0 means no comparison.
        let compare = self.compare.filter(|cas| *cas != 0);
        if compare.is_some() && compare != item.cas() {
            return Ok((Counted::Exists, 0, 0));
        }
        let number = parse(item.value()).ok_or(Refusal::Reply(Error::NotNumeric))?;
        let number = match self.direction {
            Direction::Increment => number.wrapping_add(self.delta),
            Direction::Decrement => number.saturating_sub(self.delta),
        };
        let end = self.end.unwrap_or(End::of(&item));
        Ok((Counted::To { number, end }, item.flags(), item.protocol_bits()))
    }
}

/// Parses a value: digits, then the spaces with which memcached pads a number that became shorter.
fn parse(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii_end();
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_digits_and_trailing_spaces() {
        assert_eq!(parse(b"0"), Some(0));
        assert_eq!(parse(b"007"), Some(7));
        assert_eq!(parse(b"9   "), Some(9));
        assert_eq!(parse(b"18446744073709551615"), Some(u64::MAX));
        let none: [&[u8]; 9] = [
            b"",
            b" ",
            b" 1",
            b"+1",
            b"-1",
            b"1 a",
            b"1.5",
            b"18446744073709551616",
            b"000000000000000000001",
        ];
        for value in none {
            assert_eq!(parse(value), None, "{}", value.escape_ascii());
        }
    }
}
