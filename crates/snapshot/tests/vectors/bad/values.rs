//! Damage to values. All checksums are correct.

use crate::case::{Answer, Base, Shows};
use nuthatch_snapshot::layout::record;

/// Adds a case that changes some bytes of a value, or its length in the head of a short record.
fn change(base: &mut Base, name: &str, key: &str, len: Option<u8>, writes: &[(usize, &[u8])]) {
    let place = base.anatomy.find(key.as_bytes());
    let value = value_of(base, key);
    base.case(format!("value: {name}"), Shows::Verify(value as u64), |copy| {
        if let Some(len) = len {
            copy.put(place.at + 2, &[len]);
        }
        for (at, bytes) in writes {
            copy.put(value + at, bytes);
        }
        copy.mend();
    })
    .get(key.as_bytes(), Answer::Corrupt);
}

/// Returns the offset of a key's value. The values here have no padding.
fn value_of(base: &Base, key: &str) -> usize {
    let place = base.anatomy.find(key.as_bytes());
    assert_eq!(base.anatomy.bytes[place.at] & record::SHARED, 0, "a value of its own");
    place.after_key
}

pub(crate) fn of_types(base: &mut Base) {
    change(base, "string that begins with the byte 0xff", "string", None, &[(0, &[0xff])]);
    change(base, "string that ends with half a letter", "string", None, &[(9, &[0xc3])]);
    let long = "string: beyond ASCII";
    let len = base.anatomy.bytes[base.anatomy.find(long.as_bytes()).at + 2];
    change(base, "string of more than 32 bytes cut within a letter", long, Some(len - 1), &[]);
    change(base, "string with a surrogate", long, None, &[(0, &[0xed, 0xa0, 0x80])]);
    change(base, "string with an overlong zero", long, None, &[(0, &[0xc0, 0x80])]);
    for byte in [2, 255] {
        change(base, &format!("bool {byte}"), "bool: true", None, &[(0, &[byte])]);
    }
    for len in [0, 2] {
        change(base, &format!("bool of {len} bytes"), "bool: false", Some(len), &[]);
    }
    for len in [0, 7, 9, 255] {
        change(base, &format!("i64 of {len} bytes"), "i64: greatest", Some(len), &[]);
        change(base, &format!("f64 of {len} bytes"), "f64: greatest", Some(len), &[]);
    }
    for len in [1, 31] {
        change(base, &format!("list of i64 of {len} bytes"), "list of i64", Some(len), &[]);
    }
    change(base, "list of f64 of 23 bytes", "list of f64", Some(23), &[]);
    change(base, "list of f32 of 19 bytes", "list of f32", Some(19), &[]);
    change(base, "empty list of 1 byte", "list of nothing", Some(1), &[]);
    lists_without_elements(base);
    strings(base);
}

/// Adds cases with lists without elements that are not stored as an empty list.
fn lists_without_elements(base: &mut Base) {
    for key in ["list of i64", "list of f64", "list of f32"] {
        let (at, value) = (base.anatomy.find(key.as_bytes()).at, value_of(base, key));
        base.case(format!("value: {key} of no bytes"), Shows::Verify(value as u64), |copy| {
            copy.put(at + 2, &[0]).mend();
        });
    }
}

fn strings(base: &mut Base) {
    // Two strings: count at 0, ends 3 and 7 at 4 and 8, text "nutseed" at 12.
    let key = "list of string";
    for count in [0_u32, 1, 3, 4, 5, 1 << 30, u32::MAX] {
        let name = format!("list of string: count {count} instead of 2");
        change(base, &name, key, None, &[(0, &count.to_le_bytes())]);
    }
    for (name, at, end) in [
        ("an end before the one before", 8, 2_u32),
        ("an end after the next", 4, 8),
        ("an end of 2^32 - 1", 4, u32::MAX),
        ("a last end before the end of the text", 8, 6),
        ("a last end after the end of the text", 8, 8),
        ("a last end of 2^32 - 1", 8, u32::MAX),
    ] {
        let name = format!("list of string: {name}");
        change(base, &name, key, None, &[(at, &end.to_le_bytes())]);
    }
    change(base, "list of string: text that is not UTF-8", key, None, &[(14, &[0xff])]);
    let text = "list of string: text that is UTF-8 as a whole, and its strings are not";
    change(base, text, key, None, &[(14, "ü".as_bytes())]);
    for len in [0, 3, 4, 11, 12, 18] {
        let name = format!("list of string: {len} bytes instead of 19");
        change(base, &name, key, Some(len), &[]);
    }
    let one = "list of string: one, empty";
    change(base, "list of one string: no end", one, Some(4), &[]);
}

pub(crate) fn frames(base: &mut Base) {
    let frame = value_of(base, "bytes");
    let bytes = &base.anatomy.bytes[frame..frame + 32];
    // The frame header: magic, descriptor, and here two bytes of content length.
    assert_eq!(bytes[..5], [0x28, 0xb5, 0x2f, 0xfd, 0x60], "a frame of 256 to 65,791 bytes");
    let contents = u16::from_le_bytes([bytes[5], bytes[6]]);
    let len = base.anatomy.bytes[base.anatomy.find(b"bytes").at + 2];
    for (name, at, bytes) in [
        ("another magic", 0, &[0x29][..]),
        ("a frame of a version that is past", 0, &[0x27]),
        ("the reserved bit of the descriptor", 4, &[0x68]),
        ("a frame that tells no length", 4, &[0x00]),
        ("the reserved kind of block", 7, &[0x07]),
        ("a block longer than the frame", 7, &[0xfd, 0xff, 0x0f]),
        ("one byte more than there is", 5, &(contents + 1).to_le_bytes()),
        ("one byte less than there is", 5, &(contents - 1).to_le_bytes()),
    ] {
        change(base, &format!("frame: {name}"), "bytes", None, &[(at, bytes)]);
    }
    let skipped = |len: u8| [0x50, 0x2a, 0x4d, 0x18, len - 8, 0, 0, 0];
    // A frame with one block of one byte, then a skippable frame.
    let one_byte = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 9, 0, 0, b'x'];
    let two = [&one_byte[..], &skipped(len - 10)].concat();
    change(base, "frame: one to be skipped", "bytes", None, &[(0, &skipped(len))]);
    change(base, "frame: one to be skipped after it", "bytes", None, &[(0, &two)]);
    for (name, claim) in [
        ("2^24", 1 << 24),
        ("2^24 + 1", (1 << 24) + 1),
        ("2^32", 1 << 32),
        ("2^62", 1 << 62),
        ("2^64 - 2", u64::MAX - 1),
        ("2^64 - 1", u64::MAX),
    ] {
        let name = format!("frame: claims {name} bytes");
        let bytes = [&[0xe0][..], &u64::to_le_bytes(claim)].concat();
        change(base, &name, "bytes", None, &[(4, &bytes)]);
    }
    for other in [0, 1, 4, 5, 8, len - 1] {
        let name = format!("frame: cut to {other} of {len} bytes");
        change(base, &name, "bytes", Some(other), &[]);
    }
}
