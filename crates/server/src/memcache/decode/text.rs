//! Parses text commands.

use super::command::{Command, Fault, Rest};
use super::error::Error;
use super::request::{Arith, Direction, Get, Keys, Request, Store, StoreMode};
use super::words::{Words, is_key, signed, unsigned, unsigned_32};

/// More words than any command takes, except those with many keys.
const MAX_WORDS: usize = 8;

/// Parses the line of a text command from its first word and the rest.
pub(crate) fn parse<'b>(verb: &[u8], rest: &'b [u8]) -> Result<Command<'b>, Fault> {
    let many = |cas, exptime, keys| get(cas, exptime, keys).map(Command::Whole);
    match verb {
        b"get" => return many(false, None, rest),
        b"gets" => return many(true, None, rest),
        b"gat" | b"gats" => {
            let mut words = Words { rest };
            let word = words.next().ok_or(Error::UnknownCommand)?;
            let exptime = signed(word).ok_or(Error::BadExptime)?;
            return many(verb == b"gats", Some(exptime), words.rest);
        }
        b"stats" => return Ok(Command::Whole(Request::Stats { args: rest.trim_ascii() })),
        _ => {}
    }
    let mut room = [&b""[..]; MAX_WORDS];
    let words = words(rest, &mut room);
    let store = |mode| store(mode, words);
    let whole = match verb {
        b"set" => return store(StoreMode::Set),
        b"add" => return store(StoreMode::Add),
        b"replace" => return store(StoreMode::Replace),
        b"append" => return store(StoreMode::Append),
        b"prepend" => return store(StoreMode::Prepend),
        b"cas" => return cas(words),
        b"incr" => arith(Direction::Increment, words)?,
        b"decr" => arith(Direction::Decrement, words)?,
        b"touch" => touch(words)?,
        b"delete" => delete(words)?,
        b"flush_all" => flush_all(words)?,
        b"verbosity" => verbosity(words)?,
        b"version" => Request::Version,
        b"quit" => Request::Quit,
        b"shutdown" => return Err(Error::ShutdownRefused.into()),
        _ => return Err(Error::UnknownCommand.into()),
    };
    Ok(Command::Whole(whole))
}

/// Returns the first words of a line: all, or too many for any command.
fn words<'r, 'b>(rest: &'b [u8], room: &'r mut [&'b [u8]; MAX_WORDS]) -> &'r [&'b [u8]] {
    let mut len = 0;
    for (place, word) in room.iter_mut().zip(Words { rest }) {
        *place = word;
        len += 1;
    }
    &room[..len]
}

/// Returns whether the last word is `noreply`. It counts even if other words are invalid.
fn noreply(words: &[&[u8]]) -> bool {
    words.last().is_some_and(|word| *word == b"noreply")
}

fn get(cas: bool, exptime: Option<i64>, text: &[u8]) -> Result<Request<'_>, Fault> {
    let mut words = Words { rest: text };
    let mut keys = 0_usize;
    for word in &mut words {
        if !is_key(word) {
            return Err(Error::BadFormat.into());
        }
        keys += 1;
    }
    if keys == 0 && exptime.is_none() {
        return Err(Error::UnknownCommand.into());
    }
    // Without the spaces around it, one key is the same request as in the fast path.
    let keys = Keys { text: text.trim_ascii() };
    Ok(Request::Get(Get { keys, exptime, cas }))
}

fn store<'b>(mode: StoreMode, words: &[&'b [u8]]) -> Result<Command<'b>, Fault> {
    let ([key, flags, exptime, len] | [key, flags, exptime, len, _]) = *words else {
        return Err(Fault::without_length(Error::UnknownCommand));
    };
    block(mode, [key, flags, exptime, len], None, noreply(words))
}

fn cas<'b>(words: &[&'b [u8]]) -> Result<Command<'b>, Fault> {
    let ([key, flags, exptime, len, cas] | [key, flags, exptime, len, cas, _]) = *words else {
        return Err(Fault::without_length(Error::UnknownCommand));
    };
    block(StoreMode::Set, [key, flags, exptime, len], Some(cas), noreply(words))
}

/// Parses a storage command. If the line is invalid, the data block is skipped, or the connection
/// is closed if the length of the block is unknown. So no value is ever executed as a command.
/// memcached parses the data block of an invalid line as commands.
fn block<'b>(
    mode: StoreMode,
    words: [&'b [u8]; 4],
    cas: Option<&[u8]>,
    noreply: bool,
) -> Result<Command<'b>, Fault> {
    let [key, flags, exptime, len] = words;
    let len = block_len(len).ok_or(Fault::without_length(Error::BadFormat))?;
    let store = || {
        let flags = unsigned_32(flags)?;
        let exptime = signed(exptime)?;
        let cas = match cas {
            Some(number) => Some(unsigned(number)?),
            None => None,
        };
        is_key(key).then_some(Store { mode, key, flags, exptime, cas, noreply, value: b"" })
    };
    match store() {
        Some(store) => Ok(Command::Block(Request::Store(store), len)),
        None => Err(Fault { error: Error::BadFormat, quiet: noreply, rest: Rest::Block(len) }),
    }
}

/// Returns the length of a data block, which may exceed the limit.
pub(crate) fn block_len(word: &[u8]) -> Option<usize> {
    usize::try_from(unsigned(word)?).ok()
}

fn arith<'b>(direction: Direction, words: &[&'b [u8]]) -> Result<Request<'b>, Fault> {
    let ([key, delta] | [key, delta, _]) = *words else {
        return Err(Error::UnknownCommand.into());
    };
    let noreply = noreply(words);
    let key = checked(key, noreply)?;
    let delta = unsigned(delta).ok_or(Fault::new(Error::BadDelta, noreply))?;
    Ok(Request::Arith(Arith { direction, key, delta, noreply }))
}

fn touch<'b>(words: &[&'b [u8]]) -> Result<Request<'b>, Fault> {
    let ([key, exptime] | [key, exptime, _]) = *words else {
        return Err(Error::UnknownCommand.into());
    };
    let noreply = noreply(words);
    let key = checked(key, noreply)?;
    let exptime = signed(exptime).ok_or(Fault::new(Error::BadExptime, noreply))?;
    Ok(Request::Touch { key, exptime, noreply })
}

/// Parses `delete`. Some old clients send a time of 0 after the key.
fn delete<'b>(words: &[&'b [u8]]) -> Result<Request<'b>, Fault> {
    let (key, noreply) = match *words {
        [key] | [key, b"0"] => (key, false),
        [key, b"noreply"] | [key, b"0", b"noreply"] => (key, true),
        [_, _] | [_, _, _] => return Err(Fault::new(Error::BadDelete, noreply(words))),
        _ => return Err(Error::UnknownCommand.into()),
    };
    Ok(Request::Delete { key: checked(key, noreply)?, noreply })
}

fn flush_all<'b>(words: &[&'b [u8]]) -> Result<Request<'b>, Fault> {
    let noreply = noreply(words);
    let exptime = match *words {
        [] | [b"noreply"] => 0,
        [time] | [time, _] => signed(time).ok_or(Fault::new(Error::BadExptime, noreply))?,
        _ => return Err(Error::UnknownCommand.into()),
    };
    Ok(Request::FlushAll { exptime, noreply })
}

fn verbosity<'b>(words: &[&'b [u8]]) -> Result<Request<'b>, Fault> {
    let ([level] | [level, _]) = *words else { return Err(Error::UnknownCommand.into()) };
    let noreply = noreply(words);
    let level = unsigned_32(level).ok_or(Fault::new(Error::BadFormat, noreply))?;
    Ok(Request::Verbosity { level, noreply })
}

fn checked(key: &[u8], quiet: bool) -> Result<&[u8], Fault> {
    if is_key(key) { Ok(key) } else { Err(Fault::new(Error::BadFormat, quiet)) }
}
