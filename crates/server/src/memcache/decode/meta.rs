//! The meta commands: two letters, a key, and flags.

use super::base64::is_base64;
use super::command::{Command, Fault, Rest};
use super::error::Error;
use super::flags::Flags;
use super::request::{Direction, Key, Meta, MetaVerb, Request, StoreMode};
use super::text::block_len;
use super::words::{Words, is_key};

/// Parses the line of the command `m` followed by `letter`.
pub(crate) fn parse(letter: u8, rest: &[u8]) -> Result<Command<'_>, Fault> {
    let request = match letter {
        b'g' => keyed(MetaVerb::Get, rest)?,
        b's' => return set(rest),
        b'd' => keyed(MetaVerb::Delete, rest)?,
        b'a' => arith(rest)?,
        b'n' => return Ok(Command::Whole(Request::Noop)),
        b'e' => debug(rest)?,
        _ => return Err(Error::UnknownCommand.into()),
    };
    Ok(Command::Whole(Request::Meta(request)))
}

/// Parses a key and flags.
#[inline]
fn keyed(verb: MetaVerb, rest: &[u8]) -> Result<Meta<'_>, Error> {
    let mut words = Words { rest };
    let text = words.next().ok_or(Error::UnknownCommand)?;
    meta(verb, text, words.rest)
}

#[inline]
fn meta<'b>(verb: MetaVerb, key: &'b [u8], flags: &'b [u8]) -> Result<Meta<'b>, Error> {
    if !is_key(key) {
        return Err(Error::BadFormat);
    }
    let flags = Flags::parse(flags)?;
    let base64 = flags.has(b'b');
    if base64 && !is_base64(key) {
        return Err(Error::BadBase64);
    }
    Ok(Meta { verb, key: Key { text: key, base64 }, value: b"", flags })
}

/// Parses `ms`. What follows an invalid line is skipped, or the connection is closed, as in the
/// text protocol.
fn set(rest: &[u8]) -> Result<Command<'_>, Fault> {
    let mut words = Words { rest };
    let key = words.next().ok_or(Fault::without_length(Error::UnknownCommand))?;
    let len = words.next().and_then(block_len);
    let len = len.ok_or(Fault::without_length(Error::BadFormat))?;
    let request = meta(MetaVerb::Set(StoreMode::Set), key, words.rest).and_then(|meta| {
        let mode = match meta.flags.mode().unwrap_or(b'S') {
            b'S' => StoreMode::Set,
            b'E' => StoreMode::Add,
            b'R' => StoreMode::Replace,
            b'A' => StoreMode::Append,
            b'P' => StoreMode::Prepend,
            _ => return Err(Error::BadSetMode),
        };
        Ok(Request::Meta(Meta { verb: MetaVerb::Set(mode), ..meta }))
    });
    match request {
        Ok(request) => Ok(Command::Block(request, len)),
        Err(error) => Err(Fault { error, quiet: false, rest: Rest::Block(len) }),
    }
}

fn arith(rest: &[u8]) -> Result<Meta<'_>, Error> {
    let meta = keyed(MetaVerb::Arith(Direction::Increment), rest)?;
    let direction = match meta.flags.mode().unwrap_or(b'I') {
        b'I' | b'+' => Direction::Increment,
        b'D' | b'-' => Direction::Decrement,
        _ => return Err(Error::BadArithMode),
    };
    Ok(Meta { verb: MetaVerb::Arith(direction), ..meta })
}

/// Parses `me`. It has one flag, and as in memcached others are ignored.
fn debug(rest: &[u8]) -> Result<Meta<'_>, Error> {
    let mut words = Words { rest };
    let key = words.next().ok_or(Error::BadFormat)?;
    let flags: &[u8] = if words.next() == Some(b"b") { b"b" } else { b"" };
    meta(MetaVerb::Debug, key, flags)
}
