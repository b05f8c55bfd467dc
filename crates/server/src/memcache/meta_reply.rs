//! Replies to meta commands: two letters, then flags in the order of the request.

use super::reply::{LINE_END, number_after};
use super::{Meta, MetaVerb};

/// Metadata that a reply may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Bytes of the value.
    pub len: usize,
    /// The CAS number.
    pub cas: u64,
    /// The number that the client stores with the value.
    pub client_flags: u32,
    /// Seconds until the item expires; `None` if it does not expire.
    pub ttl_secs: Option<u64>,
    /// Seconds since the last read.
    pub idle_secs: u64,
    /// Whether the item was read recently.
    pub hit_before: bool,
    /// Whether the item is marked as stale.
    pub stale: bool,
    /// Which client renews the item.
    pub renewal: Renewal,
}

/// Which client renews an item that is stale, new and empty, or about to expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// No client.
    #[default]
    None,
    /// The client that gets this reply.
    Won,
    /// A client that got an earlier reply.
    Taken,
}

/// The result of a meta request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'i> {
    /// The request was executed, and the item is as given now.
    Done(&'i Item),
    /// The key is missing.
    NotFound,
    /// Not stored: the key exists or is missing, contrary to the mode.
    NotStored,
    /// Nothing changed: the item has another CAS number.
    Exists,
}

/// Writes the reply to a meta request other than `me`, unless it is quiet. Returns whether the
/// caller must append the value of the item and [`LINE_END`].
#[inline]
pub fn reply(out: &mut Vec<u8>, request: &Meta<'_>, outcome: Outcome<'_>) -> bool {
    if request.flags.quiet() && is_usual(request.verb, outcome) {
        return false;
    }
    let value = match outcome {
        Outcome::Done(item) if has_value(request) => {
            out.extend_from_slice(b"VA");
            number_after(out, b' ', item.len as u64);
            true
        }
        _ => {
            out.extend_from_slice(code(request.verb, outcome));
            false
        }
    };
    for flag in request.flags.in_order() {
        return_flag(out, request, flag, outcome);
    }
    if let (MetaVerb::Get, Outcome::Done(item)) = (request.verb, outcome) {
        marks(out, item);
    }
    out.extend_from_slice(LINE_END);
    value
}

/// Returns whether the flag `q` suppresses this result: a miss of `mg`, and success of the other
/// commands. Errors are always replied.
fn is_usual(verb: MetaVerb, outcome: Outcome<'_>) -> bool {
    match verb {
        MetaVerb::Get => outcome == Outcome::NotFound,
        MetaVerb::Set(_) | MetaVerb::Delete | MetaVerb::Arith(_) => {
            matches!(outcome, Outcome::Done(_))
        }
        MetaVerb::Debug => false,
    }
}

fn has_value(request: &Meta<'_>) -> bool {
    matches!(request.verb, MetaVerb::Get | MetaVerb::Arith(_)) && request.flags.value()
}

fn code(verb: MetaVerb, outcome: Outcome<'_>) -> &'static [u8] {
    match (outcome, verb) {
        (Outcome::Done(_), _) => b"HD",
        (Outcome::NotFound, MetaVerb::Get | MetaVerb::Debug) => b"EN",
        (Outcome::NotFound, _) => b"NF",
        (Outcome::NotStored, _) => b"NS",
        (Outcome::Exists, _) => b"EX",
    }
}

/// Returns the opaque token and the key with every result, and other flags if there is an item.
#[inline]
fn return_flag(out: &mut Vec<u8>, request: &Meta<'_>, flag: &[u8], outcome: Outcome<'_>) {
    let Some(&letter) = flag.first() else { return };
    let item = match (letter, outcome) {
        (b'O', _) => {
            out.push(b' ');
            out.extend_from_slice(flag);
            return;
        }
        (b'k', _) => return key(out, request),
        (_, Outcome::Done(item)) => item,
        _ => return,
    };
    let letters: &[u8] = match request.verb {
        MetaVerb::Get => b"scfthl",
        MetaVerb::Set(_) => b"sc",
        MetaVerb::Arith(_) => b"ct",
        MetaVerb::Delete | MetaVerb::Debug => b"",
    };
    if !letters.contains(&letter) {
        return;
    }
    out.push(b' ');
    match (letter, item.ttl_secs) {
        (b's', _) => number_after(out, letter, item.len as u64),
        (b'c', _) => number_after(out, letter, item.cas),
        (b'f', _) => number_after(out, letter, u64::from(item.client_flags)),
        (b'h', _) => number_after(out, letter, u64::from(item.hit_before)),
        (b'l', _) => number_after(out, letter, item.idle_secs),
        (_, Some(secs)) => number_after(out, letter, secs),
        (_, None) => out.extend_from_slice(b"t-1"),
    }
}

/// Writes the key as received. memcached returns the key in base64 if it was stored so; here the
/// reply has the form of the request.
fn key(out: &mut Vec<u8>, request: &Meta<'_>) {
    out.extend_from_slice(b" k");
    out.extend_from_slice(request.key.text());
    if request.key.base64 {
        out.extend_from_slice(b" b");
    }
}

fn marks(out: &mut Vec<u8>, item: &Item) {
    if item.renewal == Renewal::Taken {
        out.extend_from_slice(b" Z");
    }
    if item.stale {
        out.extend_from_slice(b" X");
    }
    if item.renewal == Renewal::Won {
        out.extend_from_slice(b" W");
    }
}

/// An item and its storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The item.
    pub item: Item,
    /// The slab class, a field of the reply to `me`.
    pub class: u32,
    /// Bytes of key and value in memory.
    pub stored_len: usize,
}

/// Writes the reply to `me`: all metadata of an item, or that it is missing.
pub fn debug(out: &mut Vec<u8>, request: &Meta<'_>, stored: Option<&Stored>) {
    let Some(Stored { item, class, stored_len }) = stored else {
        return out.extend_from_slice(b"EN\r\n");
    };
    out.extend_from_slice(b"ME ");
    out.extend_from_slice(request.key.text());
    match item.ttl_secs {
        // A negative number that approaches 0, as in memcached.
        Some(secs) => field(out, b" exp=-", secs),
        None => out.extend_from_slice(b" exp=-1"),
    }
    field(out, b" la=", item.idle_secs);
    field(out, b" cas=", item.cas);
    out.extend_from_slice(if item.hit_before { b" fetch=yes" } else { b" fetch=no" });
    field(out, b" cls=", u64::from(*class));
    field(out, b" size=", *stored_len as u64);
    out.extend_from_slice(LINE_END);
}

fn field(out: &mut Vec<u8>, name: &[u8], number: u64) {
    out.extend_from_slice(name);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
