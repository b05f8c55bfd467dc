//! Records that extend beyond the end of the data by a byte or more.

use crate::case::{Answer, Base, Shows};
use nuthatch_snapshot::layout::{line, record};

/// Adds cases in which the slot of a key refers to the zeros at the end of the data, where only a
/// part of a record fits.
pub(crate) fn records(base: &mut Base) {
    const SHARED_STRING: u8 = 2 | record::SHARED;
    const LONG_STRING: u8 = 2 | record::LONG;
    const LONG_I64: u8 = 4 | record::LONG;
    let place = base.anatomy.places()[0];
    let key = base.anatomy.key(&place).to_vec();
    let of_key = |head: &[u8], more: &[u8]| [head, &key, more].concat();
    for (name, rest) in [
        ("a head of one byte", vec![2]),
        ("a head of two bytes", vec![2, 5]),
        ("a long head of three bytes", vec![LONG_STRING, 5, 0]),
        ("a long head of seven bytes", vec![LONG_STRING, 5, 0, 1, 0, 0, 0]),
        ("no key", vec![2, 5, 1]),
        ("half a key", [&[2, 5, 1][..], &key[..3]].concat()),
        ("a value too short by a byte", of_key(&[2, 5, 3], b"ab")),
        ("no value", of_key(&[2, 5, 1], b"")),
        ("no reference", of_key(&[SHARED_STRING, 5, 1], b"")),
        ("a reference too short by a byte", of_key(&[SHARED_STRING, 5, 1], &[0; 5])),
        ("no value where it would be aligned", of_key(&[LONG_I64, 5, 0, 8, 0, 0, 0, 0], b"")),
    ] {
        let at = base.anatomy.data().end - rest.len();
        // The first line has base 0 and shift 0, so the offset counts from the start of the data.
        let offset = (at - base.anatomy.data().start) as u16;
        assert_eq!(base.anatomy.place(place.fingerprint, 0).at, base.anatomy.data().start);
        assert_eq!(place.offset, place.fingerprint + line::OFFSETS);
        let name = format!("edge: {name}, at the end of the data");
        base.case(name, Shows::Verify(at as u64), |copy| {
            copy.put(at, &rest).put(place.offset, &offset.to_le_bytes()).mend();
        })
        .get(&key, Answer::Corrupt);
    }
}
