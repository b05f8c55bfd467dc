//! Parsing of arguments: numbers, words and options.

use super::failure::{Failure, NOT_AN_INTEGER, Result, SYNTAX};
use super::{Args, Call};
use crate::resp::integer;
use nuthatch_cache::{Condition, Expiry};

impl Args<'_> {
    /// Returns the integer at this index.
    ///
    /// # Errors
    ///
    /// A [`Failure`](super::Failure) if the argument is not an integer.
    pub fn integer(&self, at: usize) -> Result<i64> {
        integer(self.get(at)).ok_or(NOT_AN_INTEGER)
    }

    /// Returns whether the argument at this index is this word, in any case.
    #[inline]
    pub fn is(&self, at: usize, word: &str) -> bool {
        self.get(at).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// The unit and origin of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) unit_ms: i64,
    /// Whether the time is relative to now instead of 1970.
    pub(crate) from_now: bool,
}

impl Time {
    pub(crate) const EX: Self = Self { unit_ms: 1000, from_now: true };
    pub(crate) const PX: Self = Self { unit_ms: 1, from_now: true };
    pub(crate) const EXAT: Self = Self { unit_ms: 1000, from_now: false };
    pub(crate) const PXAT: Self = Self { unit_ms: 1, from_now: false };

    /// Converts `count` to milliseconds since 1970; `None` if it exceeds 64 bits.
    pub(crate) fn at_ms(self, count: i64, now_ms: u64) -> Option<i64> {
        let base = if self.from_now { i64::try_from(now_ms).ok()? } else { 0 };
        count.checked_mul(self.unit_ms)?.checked_add(base)
    }

    /// Returns the expiry from the argument at this index. It may be in the past, but not before
    /// 1970.
    pub(crate) fn expiry(self, call: &Call<'_>, at: usize, command: &str) -> Result<Expiry> {
        let count = call.args.integer(at)?;
        let at_ms = if count > 0 { self.at_ms(count, call.guard.now_ms()) } else { None };
        match at_ms.and_then(|ms| u64::try_from(ms).ok()) {
            Some(ms) => Ok(Expiry::At(ms)),
            None => Err(invalid_expiry(command)),
        }
    }
}

/// Returns the error for an invalid time.
pub(crate) fn invalid_expiry(command: &str) -> Failure {
    Failure::Reply(format!("ERR invalid expire time in '{command}' command").into())
}

/// The expiry that options request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ttl {
    /// The request has no such option.
    #[default]
    Unset,
    /// The expiry of the old item.
    Keep,
    /// No expiry.
    Persist,
    /// The time in the argument at this index.
    At(Time, usize),
}

impl Ttl {
    /// Returns the expiry of an option whose time is at index `at`.
    fn timed(word: &[u8], at: usize) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        let time = match word.as_slice() {
            b"ex" => Time::EX,
            b"px" => Time::PX,
            b"exat" => Time::EXAT,
            b"pxat" => Time::PXAT,
            _ => return None,
        };
        Some(Self::At(time, at))
    }

    /// Parses the option at `at` unless it conflicts with others, and returns the number of its
    /// arguments. An option with a time may be repeated, and the last one counts.
    fn take(&mut self, args: Args<'_>, at: usize, alone: (&str, Self)) -> Option<usize> {
        if args.is(at, alone.0) && matches!(*self, Self::Unset | Self::Keep | Self::Persist) {
            *self = alone.1;
            return Some(1);
        }
        let timed = Self::timed(args.get(at), at + 1).filter(|_| at + 1 < args.len())?;
        let same = match (*self, timed) {
            (Self::At(old, _), Self::At(new, _)) => old == new,
            _ => *self == Self::Unset,
        };
        *self = timed;
        same.then_some(2)
    }
}

/// The options of `SET`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetOptions<'a> {
    pub(crate) condition: Condition<'a>,
    /// Whether the old value is returned.
    pub(crate) get: bool,
    pub(crate) ttl: Ttl,
}

impl<'a> SetOptions<'a> {
    /// Parses all arguments after the value.
    pub(crate) fn parse(args: Args<'a>) -> Result<Self> {
        let mut options = Self { condition: Condition::Always, get: false, ttl: Ttl::Unset };
        let mut at = 3;
        while at < args.len() {
            at += options.take(args, at).ok_or(SYNTAX)?;
        }
        Ok(options)
    }

    fn take(&mut self, args: Args<'a>, at: usize) -> Option<usize> {
        let new = if args.is(at, "nx") {
            Some(Condition::Absent)
        } else if args.is(at, "xx") {
            Some(Condition::Present)
        } else {
            None
        };
        if let Some(new) = new {
            // Repeating the same condition is allowed.
            let free = self.condition == Condition::Always || self.condition == new;
            self.condition = new;
            return free.then_some(1);
        }
        if args.is(at, "ifeq") {
            let free = self.condition == Condition::Always && at + 1 < args.len();
            self.condition = Condition::Value(args.get(at + 1));
            return free.then_some(2);
        }
        if args.is(at, "get") {
            self.get = true;
            return Some(1);
        }
        self.ttl.take(args, at, ("keepttl", Ttl::Keep))
    }
}

/// Parses the options of `GETEX`.
pub(crate) fn getex(args: Args<'_>) -> Result<Ttl> {
    let mut ttl = Ttl::Unset;
    let mut at = 2;
    while at < args.len() {
        at += ttl.take(args, at, ("persist", Ttl::Persist)).ok_or(SYNTAX)?;
    }
    Ok(ttl)
}
