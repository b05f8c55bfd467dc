//! Requests in memcached's text protocol.

use crate::op::{Exchange, Op};
use crate::store::Store;

pub(crate) const NOT_NUMERIC: &str =
    "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
pub(crate) const TOO_LARGE: &str = "SERVER_ERROR object too large for cache\r\n";

/// A time as clients send it, and its meaning. A negative time has expired at once, for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exptime {
    Never,
    Over,
    In { secs: u64, end_ms: u64 },
}

impl Exptime {
    pub(crate) fn of(op: &Op, store: &Store) -> Self {
        let secs = u64::from(op.number % 60);
        match op.number % 8 {
            0 => Self::Over,
            1 | 2 => Self::Never,
            // Beyond 30 days it is a time since 1970.
            3 => {
                let secs = (store.now_ms / 1000 + secs).saturating_sub(20);
                Self::In { secs, end_ms: secs * 1000 }
            }
            _ if secs == 0 => Self::Never,
            _ => Self::In { secs, end_ms: store.now_ms + secs * 1000 },
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::Never => "0".to_owned(),
            Self::Over => "-1".to_owned(),
            Self::In { secs, .. } => secs.to_string(),
        }
    }

    /// Stores a value that expires then. Returns its version.
    pub(crate) fn put(self, store: &mut Store, key: &[u8], value: &[u8], flags: u32) -> u64 {
        let end_ms = if let Self::In { end_ms, .. } = self { Some(end_ms) } else { None };
        let version = store.put(key, value, flags, end_ms);
        if matches!(self, Self::Over) {
            store.remove(key);
        }
        version
    }

    /// Sets the expiry time of a key.
    pub(crate) fn touch(self, store: &mut Store, key: &[u8]) {
        match self {
            Self::Never => store.end_at(key, None),
            Self::Over => {
                store.remove(key);
            }
            Self::In { end_ms, .. } => store.end_at(key, Some(end_ms)),
        }
    }
}

/// Parses a number as memcached does: digits, and spaces after them.
pub(crate) fn counter(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii_end();
    let plain = digits.len() <= 20 && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}

pub(crate) fn ask(op: &Op, keys: [&[u8]; 2], store: &mut Store) -> Exchange {
    let key = keys[usize::from(op.key & 1)];
    let name = std::str::from_utf8(key).expect("plain keys");
    match op.verb % 15 {
        0..=5 => self::store(op, key, name, store),
        6 | 7 => get(keys, &[], store),
        8 => get_with_numbers(key, name, store),
        9 => {
            let exptime = Exptime::of(op, store);
            let request = format!("gat {} {name}\r\n", exptime.text());
            let exchange = Exchange { request: request.into(), ..get([key, key], &[key], store) };
            if store.get(key).is_some() {
                exptime.touch(store, key);
            }
            exchange
        }
        10 | 11 => count(op, key, name, store),
        12 => {
            let exptime = Exptime::of(op, store);
            let there = store.get(key).is_some();
            if there {
                exptime.touch(store, key);
            }
            let answer = if there { "TOUCHED\r\n" } else { "NOT_FOUND\r\n" };
            Exchange::new(format!("touch {name} {}\r\n", exptime.text())).then(answer)
        }
        13 => refused(op),
        _ => {
            let answer = if store.remove(key) { "DELETED\r\n" } else { "NOT_FOUND\r\n" };
            Exchange::new(format!("delete {name}\r\n")).then(answer)
        }
    }
}

/// A key that is too long. The bytes after the line are no request, whatever they look like.
fn refused(op: &Op) -> Exchange {
    let key = "k".repeat(251);
    let block = b"delete key:0\r\ndelete key:1\r\n";
    let len = block.len() - 2;
    let line = format!("set {key} 0 0 {len}{}\r\n", if op.coin { " noreply" } else { "" });
    let exchange = Exchange::new([line.as_bytes(), block].concat());
    if op.coin { exchange } else { exchange.then("CLIENT_ERROR bad command line format\r\n") }
}

/// `get` of these keys, or of all keys of the lane.
fn get(keys: [&[u8]; 2], only: &[&[u8]], store: &Store) -> Exchange {
    let request = [&b"get "[..], keys[0], b" ", keys[1], b"\r\n"].concat();
    let mut exchange = Exchange::new(request);
    for key in if only.is_empty() { &keys[..] } else { only } {
        if let Some(entry) = store.get(key) {
            let line = format!(" {} {}\r\n", entry.flags, entry.value.len());
            let value = [b"VALUE ", *key, line.as_bytes(), &entry.value, b"\r\n"].concat();
            exchange = exchange.then(value);
        }
    }
    exchange.then("END\r\n")
}

fn get_with_numbers(key: &[u8], name: &str, store: &Store) -> Exchange {
    let exchange = Exchange::new(format!("gets {name}\r\n"));
    let Some(entry) = store.get(key) else { return exchange.then("END\r\n") };
    exchange
        .then(format!("VALUE {name} {} {} ", entry.flags, entry.value.len()))
        .then_number(key, entry.version)
        .then([b"\r\n", &*entry.value, b"\r\nEND\r\n"].concat())
}

/// `set` and similar commands.
fn store(op: &Op, key: &[u8], name: &str, store: &mut Store) -> Exchange {
    let (value, exptime) = (op.value.bytes(), Exptime::of(op, store));
    let flags = u32::from(op.number / 3 % 3);
    let old = store.get(key).cloned();
    let verb = ["set", "add", "replace", "append", "prepend", "cas"][usize::from(op.verb % 15)];
    let number = store.cas_number(key, op.coin);
    let answer = match (verb, &old) {
        ("cas", None) => "NOT_FOUND\r\n",
        ("cas", Some(_)) if !store.is_current(key, number) => "EXISTS\r\n",
        ("add", Some(_)) | ("replace" | "append" | "prepend", None) => "NOT_STORED\r\n",
        ("append" | "prepend", Some(entry)) => {
            let parts = [&*entry.value, &*value];
            let joined =
                if verb == "append" { parts.concat() } else { [parts[1], parts[0]].concat() };
            if joined.len() > store.max_value_len {
                TOO_LARGE
            } else {
                store.alter(key, &joined);
                "STORED\r\n"
            }
        }
        _ => {
            exptime.put(store, key, &value, flags);
            "STORED\r\n"
        }
    };
    let mut line = format!("{verb} {name} {flags} {} {}", exptime.text(), value.len());
    if verb == "cas" {
        line.extend([" ", &number.to_string()]);
    }
    let quiet = (op.verb / 15).is_multiple_of(8);
    line += if quiet { " noreply\r\n" } else { "\r\n" };
    let exchange = Exchange::new([line.as_bytes(), &value, b"\r\n"].concat());
    if quiet { exchange } else { exchange.then(answer) }
}

/// `incr` and `decr`.
fn count(op: &Op, key: &[u8], name: &str, store: &mut Store) -> Exchange {
    let (verb, by) = (if op.coin { "incr" } else { "decr" }, u64::from(op.number));
    let exchange = Exchange::new(format!("{verb} {name} {by}\r\n"));
    let Some(entry) = store.get(key) else { return exchange.then("NOT_FOUND\r\n") };
    let Some(old) = counter(&entry.value) else { return exchange.then(NOT_NUMERIC) };
    let new = if op.coin { old.wrapping_add(by) } else { old.saturating_sub(by) };
    store.alter(key, new.to_string().as_bytes());
    exchange.then(format!("{new}\r\n"))
}
