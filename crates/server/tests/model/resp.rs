//! Requests in RESP.

use crate::op::{Exchange, Op};
use crate::store::{Entry, Store};

const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";
const TOO_LONG: &str = "-ERR string exceeds maximum allowed size (5/8 of maxmemory)\r\n";

fn framed(args: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend(bulk(Some(arg)));
    }
    out
}

pub(crate) fn bulk(value: Option<&[u8]>) -> Vec<u8> {
    let Some(value) = value else { return b"$-1\r\n".to_vec() };
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

fn integer(number: impl Into<i64>) -> String {
    format!(":{}\r\n", number.into())
}

fn count(number: usize) -> String {
    format!(":{number}\r\n")
}

fn words(words: &str) -> Vec<u8> {
    let args: Vec<_> = words.split(' ').map(str::as_bytes).collect();
    framed(&args)
}

pub(crate) fn ask(op: &Op, keys: [&[u8]; 2], store: &mut Store) -> Exchange {
    let key = keys[usize::from(op.key & 1)];
    let name = std::str::from_utf8(key).expect("plain keys");
    let value = op.value.bytes();
    let value_of = |store: &Store| store.get(key).map(|entry| entry.value.clone());
    match op.verb % 22 {
        0..=2 => set(op, key, &value, store),
        3 | 4 => {
            Exchange::new(words(&format!("GET {name}"))).then(bulk(value_of(store).as_deref()))
        }
        5 => {
            let removed = keys.iter().filter(|key| store.remove(key)).count();
            Exchange::new(framed(&[b"DEL", keys[0], keys[1]])).then(count(removed))
        }
        6 => {
            let there = [key, key].iter().filter(|key| store.get(key).is_some()).count();
            Exchange::new(framed(&[b"EXISTS", key, key])).then(count(there))
        }
        7 => append(key, &value, store),
        8 => add(key, i64::from(op.number) - 30_000, store),
        9 | 10 => pexpire(op, key, store),
        11 => {
            let expires = store.get(key).is_some_and(|entry| entry.end_ms.is_some());
            if expires {
                store.end_at(key, None);
            }
            Exchange::new(words(&format!("PERSIST {name}"))).then(integer(expires))
        }
        12 => ttl(op, name, store),
        13 => {
            let len = value_of(store).map_or(0, |value| value.len());
            Exchange::new(words(&format!("STRLEN {name}"))).then(count(len))
        }
        14 => {
            let answer = keys.map(|key| bulk(store.get(key).map(|entry| &*entry.value)));
            Exchange::new(framed(&[b"MGET", keys[0], keys[1]])).then("*2\r\n").then(answer.concat())
        }
        15 => {
            store.put(keys[0], &value, 0, None);
            store.put(keys[1], b"2", 0, None);
            let request = framed(&[b"MSET", keys[0], &value, keys[1], b"2"]);
            Exchange::new(request).then("+OK\r\n")
        }
        16 => {
            let old = value_of(store);
            if old.is_some() {
                store.remove(key);
            }
            Exchange::new(words(&format!("GETDEL {name}"))).then(bulk(old.as_deref()))
        }
        17 => rename(key, keys[usize::from(op.key >> 1)], store),
        18 => set_range(op, key, &value, store),
        19 => Exchange::new(if op.coin { "*0\r\n*-1\r\n" } else { "\r\n \r\n" }),
        20 => Exchange::new(if op.coin { "ECHO 'a b'\r\n" } else { "echo \"a\\x20b\"\n" })
            .then("$3\r\na b\r\n"),
        _ => transaction(key, name, store),
    }
}

/// `SET` with its options.
fn set(op: &Op, key: &[u8], value: &[u8], store: &mut Store) -> Exchange {
    let ms = u64::from(op.number) + 1;
    let at_ms = (store.now_ms + ms).saturating_sub(30_000);
    let old = store.get(key).cloned();
    let kept = old.as_ref().and_then(|entry| entry.end_ms);
    let (option, holds, end_ms) = match op.verb / 22 % 8 {
        0 | 1 => (String::new(), true, None),
        2 => ("NX".to_owned(), old.is_none(), None),
        3 => ("XX".to_owned(), old.is_some(), None),
        4 => ("KEEPTTL".to_owned(), true, kept),
        5 => (format!("PXAT {at_ms}"), true, Some(at_ms)),
        _ => (format!("PX {ms}"), true, Some(store.now_ms + ms)),
    };
    let mut args = vec![&b"SET"[..], key, value];
    args.extend(option.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes));
    let get = op.coin && !(op.verb / 22).is_multiple_of(8);
    if get {
        args.push(b"GET");
    }
    if holds {
        store.put(key, value, 0, end_ms);
    }
    let answer = match (get, holds) {
        (true, _) => bulk(old.as_ref().map(|entry| &*entry.value)),
        (false, true) => b"+OK\r\n".to_vec(),
        (false, false) => bulk(None),
    };
    Exchange::new(framed(&args)).then(answer)
}

fn append(key: &[u8], value: &[u8], store: &mut Store) -> Exchange {
    let old = store.get(key).map_or(&[][..], |entry| &entry.value);
    let joined = [old, value].concat();
    let exchange = Exchange::new(framed(&[b"APPEND", key, value]));
    if joined.len() > store.max_value_len {
        return exchange.then(TOO_LONG);
    }
    store.alter(key, &joined);
    exchange.then(count(joined.len()))
}

/// Parses a number as RESP does: no sign but `-`, no leading zeros.
fn strict(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn sum(key: &[u8], by: i64, store: &mut Store) -> Option<i64> {
    let old = store.get(key).map_or(Some(0), |entry| strict(&entry.value))?;
    store.alter(key, (old + by).to_string().as_bytes());
    Some(old + by)
}

fn add(key: &[u8], by: i64, store: &mut Store) -> Exchange {
    let answer = sum(key, by, store).map_or(NOT_AN_INTEGER.to_owned(), integer);
    Exchange::new(framed(&[b"INCRBY", key, by.to_string().as_bytes()])).then(answer)
}

fn pexpire(op: &Op, key: &[u8], store: &mut Store) -> Exchange {
    // Some expire at once.
    let ms = i64::from(op.number) - 5000;
    let there = store.get(key).is_some();
    if there && ms <= 0 {
        store.remove(key);
    } else if there {
        store.end_at(key, Some(store.now_ms + ms.unsigned_abs()));
    }
    Exchange::new(framed(&[b"PEXPIRE", key, ms.to_string().as_bytes()])).then(integer(there))
}

fn ttl(op: &Op, name: &str, store: &Store) -> Exchange {
    let left = |entry: &Entry| entry.end_ms.map(|end_ms| end_ms - store.now_ms);
    let (verb, unit_ms) = if op.coin { ("PTTL", 1) } else { ("TTL", 1000) };
    let answer = match store.get(name.as_bytes()).map(left) {
        None => integer(-2),
        Some(None) => integer(-1),
        Some(Some(left)) => integer(((left + unit_ms / 2) / unit_ms).cast_signed()),
    };
    Exchange::new(words(&format!("{verb} {name}"))).then(answer)
}

fn rename(from: &[u8], to: &[u8], store: &mut Store) -> Exchange {
    let exchange = Exchange::new(framed(&[b"RENAME", from, to]));
    let Some(entry) = store.get(from).cloned() else {
        return exchange.then("-ERR no such key\r\n");
    };
    if from != to {
        store.remove(from);
        store.put(to, &entry.value, entry.flags, entry.end_ms);
    }
    exchange.then("+OK\r\n")
}

fn set_range(op: &Op, key: &[u8], value: &[u8], store: &mut Store) -> Exchange {
    let start = usize::from(op.number % 20);
    let mut new = store.get(key).map_or(Vec::new(), |entry| entry.value.clone());
    let offset = start.to_string();
    let exchange = Exchange::new(framed(&[b"SETRANGE", key, offset.as_bytes(), value]));
    if !value.is_empty() {
        new.resize(new.len().max(start + value.len()), 0);
        new[start..start + value.len()].copy_from_slice(value);
        store.alter(key, &new);
    }
    exchange.then(count(new.len()))
}

/// Two requests that are executed together.
fn transaction(key: &[u8], name: &str, store: &mut Store) -> Exchange {
    let request = ["MULTI", &format!("INCRBY {name} 3"), &format!("GET {name}"), "EXEC"];
    let request: Vec<_> = request.iter().flat_map(|line| words(line)).collect();
    let answer = sum(key, 3, store).map_or(NOT_AN_INTEGER.to_owned(), integer);
    Exchange::new(request)
        .then("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n")
        .then(answer)
        .then(bulk(store.get(key).map(|entry| &*entry.value)))
}
