//! Damage to the heads, keys and references of records. All checksums are correct.

use crate::anatomy::Place;
use crate::case::{Answer, Base, Shows};
use nuthatch_snapshot::layout::record as at;

/// Adds a case that changes some bytes, with the result of a lookup of the record's key.
fn change(
    base: &mut Base,
    (name, place): (&str, Place),
    shows: Shows,
    answer: Option<Answer>,
    (offset, bytes): (usize, &[u8]),
) {
    let key = base.anatomy.key(&place).to_vec();
    let case = base.case(format!("record: {name}"), shows, |copy| copy.put(offset, bytes).mend());
    if let Some(answer) = answer {
        case.get(&key, answer);
    }
}

pub(crate) fn of_types(base: &mut Base) {
    short(base);
    long(base);
    last(base);
}

fn short(base: &mut Base) {
    let corrupt = Some(Answer::Corrupt);
    let place = base.anatomy.find(b"string");
    let (record, value) = (Shows::Verify(place.at as u64), Shows::Verify(place.after_key as u64));
    let tag = base.anatomy.bytes[place.at];
    for (name, shows, answer, tag) in [
        ("type 0", record, corrupt, 0),
        ("type 11", record, corrupt, 11),
        ("type 15", record, corrupt, 15),
        ("the bit of the tag that is zero", record, corrupt, tag | at::RESERVED),
        ("shared, so that the value is taken for a reference", value, corrupt, tag | at::SHARED),
        ("compressed, and no frame", value, corrupt, tag | at::ZSTD),
        ("long", Shows::Somewhere, None, tag | at::LONG),
        ("all bits of the tag", Shows::Somewhere, corrupt, 0xff),
        ("a string called bytes", Shows::Verify(176), None, 1),
        ("a string called a bool", value, corrupt, 3),
        ("a string called an i64", Shows::Somewhere, corrupt, 4),
        ("a string called a list of string", Shows::Somewhere, corrupt, 9),
        ("a string called an empty list", value, corrupt, 10),
    ] {
        change(base, (name, place), shows, answer, (place.at, &[tag]));
    }
    let absent = Some(Answer::Absent);
    let len = (place.after_key - place.key) as u8;
    for other in [0, len - 1, len + 1, 255] {
        let name = format!("key length {other} instead of {len}");
        let write = (place.at + 1, &[other][..]);
        change(base, (&name, place), Shows::Somewhere, absent, write);
    }
    let len = base.anatomy.bytes[place.at + 2];
    for other in [0, len - 1, len + 1, 255] {
        let name = format!("value length {other} instead of {len}");
        change(base, (&name, place), Shows::Somewhere, None, (place.at + 2, &[other]));
    }
    change(base, ("another key", place), record, absent, (place.key, b"S"));
    let place = base.anatomy.find(b"i64: 0");
    let name = "an i64 called an f64";
    change(base, (name, place), Shows::Verify(176), None, (place.at, &[5]));
}

fn long(base: &mut Base) {
    let place = base.anatomy.find(b"list of f32: 128 elements");
    let record = Shows::Verify(place.at as u64);
    let corrupt = Some(Answer::Corrupt);
    for (len, shows) in [
        (1_u64 << 32, record),
        ((1 << 32) + 1, Shows::Verify(place.at as u64 + 3)),
        ((1 << 40) - 1, Shows::Verify(place.at as u64 + 3)),
    ] {
        let name = format!("long: value length {len}");
        let write = (place.at + 3, &len.to_le_bytes()[..5]);
        change(base, (&name, place), shows, corrupt, write);
    }
    let name = "long: key length 65,535";
    change(base, (name, place), record, corrupt, (place.at + 1, &[0xff; 2]));
    let padding = Shows::Verify(place.after_key as u64);
    change(base, ("long: padding that is not zero", place), padding, None, (place.after_key, &[1]));
}

/// Adds damage to the last record of a partition, which ends where the partition's data ends.
fn last(base: &mut Base) {
    let place = *base.anatomy.places().last().expect("a record");
    let record = Shows::Verify(place.at as u64);
    let name = "last: a value that ends after the partition";
    change(base, (name, place), record, None, (place.at + 2, &[255]));
    let name = "last: a key that ends after the partition";
    change(base, (name, place), record, Some(Answer::Absent), (place.at + 1, &[255]));
}

pub(crate) fn shared(base: &mut Base) {
    let corrupt = Some(Answer::Corrupt);
    let len = base.anatomy.data().len() as u64;
    let place = referring(base, "string");
    let reference = Shows::Verify(place.after_key as u64);
    for (name, offset) in [
        ("the last byte of the data", len - 1),
        ("the end of the data", len),
        ("a byte after the data", len + 1),
        ("2^48 - 1", (1 << 48) - 1),
    ] {
        let name = format!("shared: a reference to {name}");
        let write = (place.after_key, &offset.to_le_bytes()[..6]);
        change(base, (&name, place), reference, corrupt, write);
    }
    let name = "shared: a tag without the bit";
    let tag = base.anatomy.bytes[place.at] & !at::SHARED;
    change(base, (name, place), Shows::Somewhere, None, (place.at, &[tag]));
    for name in ["list of i64", "list of f32"] {
        let place = referring(base, name);
        let offset = base.anatomy.number(place.after_key, 6) as u64 + 1;
        let (record, name) =
            (Shows::Verify(place.at as u64), format!("shared: a misaligned {name}"));
        let write = (place.after_key, &offset.to_le_bytes()[..6]);
        change(base, (&name, place), record, corrupt, write);
    }
}

/// Returns a record with a reference and a key with this prefix.
fn referring(base: &Base, prefix: &str) -> Place {
    let places = (0..6).map(|i| base.anatomy.find(format!("{prefix} {i}").as_bytes()));
    let mut places = places.filter(|place| base.anatomy.bytes[place.at] & at::SHARED != 0);
    places.next().expect("a shared value")
}
