//! Requests in memcached's meta protocol.

use crate::memcache::{Exptime, NOT_NUMERIC, TOO_LARGE, counter};
use crate::op::{Exchange, Op};
use crate::store::{Entry, Store};

pub(crate) fn ask(op: &Op, keys: [&[u8]; 2], store: &mut Store) -> Exchange {
    let key = keys[usize::from(op.key & 1)];
    let name = std::str::from_utf8(key).expect("plain keys");
    match op.verb % 12 {
        0..=3 => get(op, key, name, store),
        4..=7 => set(op, key, name, store),
        8 | 9 => delete(op, key, name, store),
        10 => count(op, key, name, store),
        _ => Exchange::new("mn\r\n").then("MN\r\n"),
    }
}

/// Returns the seconds until an expiry time, as the server formats them.
fn left(end_ms: Option<u64>, now_ms: u64) -> String {
    end_ms
        .map_or("-1".to_owned(), |end_ms| end_ms.saturating_sub(now_ms).div_ceil(1000).to_string())
}

/// `mg`, with or without a value and a new time, quiet or not.
fn get(op: &Op, key: &[u8], name: &str, store: &mut Store) -> Exchange {
    let kind = op.verb / 12 % 6;
    let exptime = Exptime::of(op, store);
    let touch = format!(" T{}", exptime.text());
    let flags = match kind {
        0 => "v",
        1 => "k v f t s",
        2 => "c s v",
        3 => "q v k Oopaque",
        4 => "t f",
        _ => &format!("s t{touch} v"),
    };
    let now_ms = store.now_ms;
    // So that there is a reply in any case.
    let mn = if kind == 3 { "mn\r\n" } else { "" };
    let exchange = Exchange::new(format!("mg {name} {flags}\r\n{mn}"));
    let Some(Entry { value, flags, end_ms, version }) = store.get(key).cloned() else {
        return exchange.then(match kind {
            1 => format!("EN k{name}\r\n"),
            3 => "MN\r\n".to_owned(),
            _ => "EN\r\n".to_owned(),
        });
    };
    let (len, left) = (value.len(), |end_ms| left(end_ms, now_ms));
    let value = [b"\r\n", &*value, b"\r\n"].concat();
    match kind {
        0 => exchange.then(format!("VA {len}")).then(value),
        1 => {
            let head = format!("VA {len} k{name} f{flags} t{} s{len}", left(end_ms));
            exchange.then(head).then(value)
        }
        2 => exchange
            .then(format!("VA {len} c"))
            .then_number(key, version)
            .then(format!(" s{len}"))
            .then(value),
        3 => exchange.then(format!("VA {len} k{name} Oopaque")).then(value).then("MN\r\n"),
        4 => exchange.then(format!("HD t{} f{flags}\r\n", left(end_ms))),
        _ => {
            let end = match exptime {
                Exptime::Never => None,
                Exptime::Over => Some(now_ms),
                Exptime::In { end_ms, .. } => Some(end_ms),
            };
            exptime.touch(store, key);
            exchange.then(format!("VA {len} s{len} t{}", left(end))).then(value)
        }
    }
}

/// `ms` in its modes, with or without a number to compare.
fn set(op: &Op, key: &[u8], name: &str, store: &mut Store) -> Exchange {
    let (value, exptime) = (op.value.bytes(), Exptime::of(op, store));
    let client = u32::from(op.number / 3 % 3);
    let old = store.get(key).cloned();
    let mode = ["S", "E", "R", "A", "P", "S", "S"][usize::from(op.verb / 12 % 7)];
    let compares = op.verb / 12 % 7 == 5;
    let number = store.cas_number(key, op.coin);
    let mut line = format!("ms {name} {} T{} F{client} M{mode}", value.len(), exptime.text());
    if compares {
        line.extend([" C", &number.to_string()]);
    }
    let then_number = op.verb / 12 % 7 == 6;
    line += if then_number { " c\r\n" } else { "\r\n" };
    let exchange = Exchange::new([line.as_bytes(), &value, b"\r\n"].concat());
    let refused = match (mode, &old) {
        _ if compares && old.is_none() => Some("NF\r\n"),
        _ if compares && !store.is_current(key, number) => Some("EX\r\n"),
        ("E", Some(_)) | ("R" | "A" | "P", None) => Some("NS\r\n"),
        _ => None,
    };
    if let Some(refused) = refused {
        return exchange.then(refused);
    }
    let version = match (mode, old) {
        ("A" | "P", Some(entry)) => {
            let parts = if mode == "A" { [entry.value, value] } else { [value, entry.value] };
            let joined = parts.concat();
            if joined.len() > store.max_value_len {
                return exchange.then(TOO_LARGE);
            }
            store.alter(key, &joined)
        }
        _ => exptime.put(store, key, &value, client),
    };
    if then_number {
        exchange.then("HD c").then_number(key, version).then("\r\n")
    } else {
        exchange.then("HD\r\n")
    }
}

/// `md`, with or without a number to compare.
fn delete(op: &Op, key: &[u8], name: &str, store: &mut Store) -> Exchange {
    let number = store.cas_number(key, op.coin);
    let compares = (op.verb / 12).is_multiple_of(2);
    let flag = if compares { format!(" C{number}") } else { String::new() };
    let exchange = Exchange::new(format!("md {name}{flag} k\r\n"));
    if compares && store.get(key).is_some() && !store.is_current(key, number) {
        return exchange.then(format!("EX k{name}\r\n"));
    }
    if compares && store.get(key).is_none() {
        return exchange.then(format!("NF k{name}\r\n"));
    }
    let code = if store.remove(key) { "HD" } else { "NF" };
    exchange.then(format!("{code} k{name}\r\n"))
}

/// `ma`, which creates a number if there is none.
fn count(op: &Op, key: &[u8], name: &str, store: &mut Store) -> Exchange {
    let (by, now_ms) = (u64::from(op.number), store.now_ms);
    let mode = if op.coin { "I" } else { "D" };
    let exchange = Exchange::new(format!("ma {name} N30 J7 D{by} M{mode} t v\r\n"));
    let (new, end_ms) = match store.get(key) {
        None => {
            let end_ms = Some(now_ms + 30_000);
            store.put(key, b"7", 0, end_ms);
            (7, end_ms)
        }
        Some(entry) => {
            let Some(old) = counter(&entry.value) else { return exchange.then(NOT_NUMERIC) };
            let end_ms = entry.end_ms;
            let new = if op.coin { old.wrapping_add(by) } else { old.saturating_sub(by) };
            store.alter(key, new.to_string().as_bytes());
            (new, end_ms)
        }
    };
    let text = new.to_string();
    exchange.then(format!("VA {} t{}\r\n{text}\r\n", text.len(), left(end_ms, now_ms)))
}
