//! Requests in the protocols of poor-man's-cache and mrcache.

use crate::op::{Exchange, Op};
use crate::resp;
use crate::store::Store;

/// Messages of poor-man's-cache, and sometimes one of RESP on the same connection.
pub(crate) fn ask_pmc(op: &Op, keys: [&[u8]; 2], store: &mut Store) -> Exchange {
    let key = keys[usize::from(op.key & 1)];
    let message = |words: &[&[u8]]| [&words.join(&b' '), &b"\x1f"[..]].concat();
    match op.verb % 9 {
        8 => Exchange::new("\x1f\x1f\x1f"),
        0..=2 => {
            let mut value = op.value.bytes();
            value.iter_mut().filter(|byte| **byte == 0x1f).for_each(|byte| *byte = b'.');
            store.put(key, &value, 0, None);
            Exchange::new(message(&[b"SET", key, &value])).then("OK\x1f")
        }
        3 | 4 => {
            let answer = match store.get(key) {
                None => &b"(nil)"[..],
                Some(entry) if entry.value.contains(&0x1f) => b"ERROR: Value holds a separator",
                Some(entry) => &entry.value,
            };
            Exchange::new(message(&[b"GET", key])).then(answer).then(b"\x1f")
        }
        5 => {
            let there = store.remove(key);
            let answer = if there { "OK\x1f" } else { "ERROR: Key does not exist\x1f" };
            Exchange::new(message(&[b"DEL", key])).then(answer)
        }
        // Not a line, which would be a message.
        _ => resp::ask(&Op { verb: op.verb / 9 % 19, ..op.clone() }, keys, store),
    }
}

/// Requests of mrcache. A request that stores has no reply.
pub(crate) fn ask_mrcache(op: &Op, keys: [&[u8]; 2], store: &mut Store) -> Exchange {
    let key = keys[usize::from(op.key & 1)];
    let key_len = (key.len() as u16).to_le_bytes();
    let compressed = u8::from(op.coin) * 2;
    if op.verb.is_multiple_of(2) {
        let value = op.value.bytes();
        store.put(key, &value, 0, None);
        let value_len = (value.len() as u32).to_le_bytes();
        let head = [&[0, 2 + compressed][..], &key_len, &value_len].concat();
        return Exchange::new([&*head, key, &value].concat());
    }
    let value = store.get(key).map_or(&[][..], |entry| &entry.value);
    Exchange::new([&[0, 1 + compressed][..], &key_len, key].concat())
        .then((value.len() as u32).to_le_bytes())
        .then(value)
}
