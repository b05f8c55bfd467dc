//! Reads and writes of values as clients see them, whatever the form in which they are stored.
//!
//! Commands use these functions instead of those of [`Guard`] with the same name. Without
//! compression they do the same.

use super::Server;
use crate::compression::EncodedValue;
use crate::output::ZeroCopyValues;
use nuthatch_cache::{Guard, Item, KeyHash, Outcome, Result, Write};

pub(crate) use crate::compression::raw_len;

/// A cache, under an epoch guard, and the server that it belongs to.
pub(crate) type Place<'a> = (&'a Guard<'a>, &'a Server);

/// Appends the raw value of an item to the output of a connection, by reference if possible. The
/// item must have been read under this guard, or is [detached](Item::is_detached).
///
/// # Errors
///
/// [`Error::Full`](nuthatch_cache::Error::Full) if it cannot be decompressed.
#[inline]
pub(crate) fn send(
    (guard, server): Place<'_>,
    item: &Item<'_>,
    (out, zero_copy): (&mut Vec<u8>, &mut ZeroCopyValues),
) -> Result<()> {
    if item.is_compressed() {
        return server.compression.decompress(item, out);
    }
    zero_copy.value(guard, &server.cache, item, out);
    Ok(())
}

/// Returns an item with its raw value, in `buffer` if it is compressed.
///
/// # Errors
///
/// [`Error::Full`](nuthatch_cache::Error::Full) if it cannot be decompressed.
#[inline]
pub(crate) fn raw_item<'i>(
    server: &Server,
    item: Item<'i>,
    buffer: &'i mut Vec<u8>,
) -> Result<Item<'i>> {
    server.compression.raw_item(item, buffer)
}

/// Stores a value like [`Guard::set`]. The condition must not be about the value: see
/// [`set_if_equal`].
#[inline]
pub(crate) fn set(
    (guard, server): Place<'_>,
    key: &[u8],
    value: &[u8],
    write: &Write<'_>,
) -> Result<Outcome> {
    set_hashed((guard, server), (key, server.cache.hash(key)), value, write)
}

/// Stores a value as [`set`] does, for a key whose hash is known.
#[inline]
pub(crate) fn set_hashed(
    (guard, server): Place<'_>,
    (key, hash): (&[u8], KeyHash),
    value: &[u8],
    write: &Write<'_>,
) -> Result<Outcome> {
    if !server.compression.is_on() {
        return guard.set_hashed(key, hash, value, write);
    }
    set_encoded(guard, (key, hash), &server.compression.encode(key, value), write)
}

/// Stores a value, compressed if that makes it shorter, even if compression is off.
pub(crate) fn set_compressed(
    (guard, server): Place<'_>,
    key: &[u8],
    value: &[u8],
    write: &Write<'_>,
) -> Result<Outcome> {
    let hash = server.cache.hash(key);
    set_encoded(guard, (key, hash), &server.compression.compress(key, value), write)
}

fn set_encoded(
    guard: &Guard<'_>,
    (key, hash): (&[u8], KeyHash),
    encoded: &EncodedValue<'_>,
    write: &Write<'_>,
) -> Result<Outcome> {
    guard.set_hashed(key, hash, encoded.bytes(), &write.compressed(encoded.is_compressed()))
}

/// Stores a value if that of the key is `expected`.
pub(crate) fn set_if_equal(
    place: Place<'_>,
    key: &[u8],
    (value, expected): (&[u8], &[u8]),
    write: Write<'_>,
) -> Result<Outcome> {
    set_by(place, key, value, |item| match item {
        Some(item) if item.value() == expected => (Some(write), Outcome::Stored),
        Some(_) => (None, Outcome::Exists),
        None => (None, Outcome::Missing),
    })
}

/// Stores a value or not, like [`Guard::set_by`]. `decide` gets the item with its raw value.
pub(crate) fn set_by<'w, R>(
    (guard, server): Place<'_>,
    key: &[u8],
    value: &[u8],
    mut decide: impl FnMut(Option<Item<'_>>) -> (Option<Write<'w>>, R),
) -> Result<R> {
    let encoded = server.compression.encode(key, value);
    let mut buffer = Vec::new();
    guard.set_by(key, encoded.bytes(), |stored| {
        let item = stored.map(|item| raw_item(server, item, &mut buffer)).transpose();
        match item.map(&mut decide) {
            Ok((write, answer)) => {
                (write.map(|write| write.compressed(encoded.is_compressed())), Ok(answer))
            }
            Err(error) => (None, Err(error)),
        }
    })?
}

/// Replaces the value of a key like [`Guard::update`]. `change` gets the item with its raw value,
/// and creates a raw one. A value that `change` only copies stays in the form in which it is
/// stored.
#[inline]
pub(crate) fn update<'w, R>(
    (guard, server): Place<'_>,
    key: &[u8],
    mut change: impl FnMut(Option<Item<'_>>, &mut Vec<u8>) -> (Option<Write<'w>>, R),
) -> Result<R> {
    let mut buffer = Vec::new();
    guard.update(key, |stored, value| {
        let item = match stored.map(|item| raw_item(server, item, &mut buffer)).transpose() {
            Ok(item) => item,
            Err(error) => return (None, Err(error)),
        };
        let (write, answer) = change(item, value);
        let is_encoded =
            server.compression.is_on() || stored.is_some_and(|stored| stored.is_compressed());
        let write = match write {
            Some(write) if is_encoded => {
                let items = stored.zip(item);
                Some(write.compressed(encode_new(server, key, items, value)))
            }
            other => other,
        };
        (write, Ok(answer))
    })?
}

/// Replaces a new raw value by its stored form, and returns whether that is compressed. `old` is
/// the current item as it is stored, and with its raw value.
fn encode_new(
    server: &Server,
    key: &[u8],
    old: Option<(Item<'_>, Item<'_>)>,
    value: &mut Vec<u8>,
) -> bool {
    if let Some((stored, _)) = old.filter(|(_, raw)| raw.value() == value.as_slice()) {
        if stored.is_compressed() {
            value.clear();
            value.extend_from_slice(stored.value());
        }
        return stored.is_compressed();
    }
    let encoded = server.compression.encode(key, value);
    let is_compressed = encoded.is_compressed();
    if is_compressed {
        let bytes = encoded.bytes().to_vec();
        drop(encoded);
        *value = bytes;
    }
    is_compressed
}

/// Stores several values like [`Guard::set_all`]. Only the first ones are compressed, up to the
/// maximum length of one value, so that a long request needs little more memory and time.
pub(crate) fn set_all<'k>(
    (guard, server): Place<'_>,
    items: impl Iterator<Item = (&'k [u8], &'k [u8])> + Clone,
    write: &Write<'_>,
) -> Result<()> {
    if !server.compression.is_on() {
        return guard.set_all(items, write);
    }
    // A thread has one buffer, so the compressed values are copied.
    let mut encoded = Vec::with_capacity(items.size_hint().0);
    let mut left = server.compression.max_len();
    for (key, value) in items.clone() {
        let rest = left.checked_sub(value.len());
        left = rest.unwrap_or(left);
        let one = rest.map(|_| server.compression.encode(key, value));
        let one = one.filter(EncodedValue::is_compressed);
        encoded.push(one.map(|one| one.bytes().to_vec()));
    }
    let items = items.zip(&encoded).map(|((key, value), encoded)| {
        (key, encoded.as_deref().unwrap_or(value), encoded.is_some())
    });
    guard.set_all_encoded(items, write)
}
