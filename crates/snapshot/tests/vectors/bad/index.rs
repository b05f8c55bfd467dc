//! Damage to the lines of the index.

use super::bits;
use crate::anatomy::{Anatomy, Place};
use crate::case::{Answer, Base, Shows};
use nuthatch_snapshot::layout::{directory, header, line as at};

/// Returns a full line that a key was moved past, and the record of that key.
fn passed(anatomy: &Anatomy) -> (usize, Place) {
    let moved = anatomy.moved();
    let (home, _, place) = moved.first().expect("a key beyond its home line");
    (anatomy.lines().nth(*home).expect("a line"), *place)
}

/// Adds cases with one flipped bit, which the checksum of the partition's lines detects.
pub(crate) fn flipped(base: &mut Base) {
    let (full, _) = passed(&base.anatomy);
    let shows = Shows::Verify((base.anatomy.entry(0) + directory::INDEX_HASH) as u64);
    for (name, field, len) in [
        ("fingerprint 0", at::FINGERPRINTS, 2),
        ("fingerprint 13", at::FINGERPRINTS + 26, 2),
        ("offset 0", at::OFFSETS, 2),
        ("offset 13", at::OFFSETS + 26, 2),
        ("shift", at::SHIFT, 1),
        ("overflow", at::OVERFLOW, 1),
        ("base", at::BASE, 6),
    ] {
        for bit in bits(len) {
            base.case(format!("line: {name}: bit {bit} flipped"), shows, |copy| {
                copy.flip(full + field, bit);
            });
        }
    }
}

pub(crate) fn slots(base: &mut Base) {
    let (full, _) = passed(&base.anatomy);
    for slot in 0..at::SLOTS {
        let place = base.anatomy.place(full, slot);
        let key = base.anatomy.key(&place).to_vec();
        for bit in [0, 15] {
            let name = format!("line: fingerprint {slot}: bit {bit} flipped, mended");
            base.case(name, Shows::Verify(place.at as u64), |copy| {
                copy.flip(place.fingerprint, bit).mend();
            })
            .get(&key, Answer::Absent);
        }
        for bit in [0, 7] {
            let name = format!("line: offset {slot}: bit {bit} flipped, mended");
            base.case(name, Shows::Somewhere, |copy| copy.flip(place.offset, bit).mend());
        }
        let name = format!("line: offset {slot} outside of the data, mended");
        base.case(name, Shows::Verify(place.offset as u64), |copy| {
            copy.put(place.offset, &[0xff; 2]).mend();
        })
        .get(&key, Answer::Corrupt);
    }
    let [first, second, last] = [0, 1, 13].map(|slot| base.anatomy.place(full, slot));
    let slot = |place: Place| [place.fingerprint, place.offset];
    let copied = |base: &Base, place| slot(place).map(|at| base.anatomy.bytes[at..at + 2].to_vec());
    let (one, two) = (copied(base, first), copied(base, second));
    base.case("line: a gap in the slots, mended", Shows::Verify(full as u64), |copy| {
        copy.put(first.fingerprint, &[0; 2]).mend();
    });
    base.case(
        "line: an offset in an unused slot, mended",
        Shows::Verify(last.offset as u64),
        |copy| {
            copy.put(last.fingerprint, &[0; 2]).mend();
        },
    );
    base.case("line: the last slot cleared, mended", Shows::Verify(last.at as u64), |copy| {
        copy.put(last.fingerprint, &[0; 2]).put(last.offset, &[0; 2]).mend();
    });
    base.case("line: two slots exchanged, mended", Shows::Verify(first.at as u64), |copy| {
        copy.put(first.fingerprint, &two[0]).put(first.offset, &two[1]);
        copy.put(second.fingerprint, &one[0]).put(second.offset, &one[1]).mend();
    });
    base.case(
        "line: one record in two slots, mended",
        Shows::Verify(second.offset as u64),
        |copy| {
            copy.put(second.fingerprint, &one[0]).put(second.offset, &one[1]).mend();
        },
    );
}

pub(crate) fn lines(base: &mut Base) {
    let (full, moved) = passed(&base.anatomy);
    let moved_key = base.anatomy.key(&moved).to_vec();
    let first = base.anatomy.place(full, 0);
    let first_key = base.anatomy.key(&first).to_vec();
    let offset = |slot: usize| (full + at::OFFSETS + 2 * slot) as u64;
    for shift in [25, 64, 255] {
        let name = format!("line: shift {shift}, mended");
        base.case(name, Shows::Verify((full + at::SHIFT) as u64), |copy| {
            copy.put(full + at::SHIFT, &[shift]).mend();
        });
    }
    base.case("line: shift 24, mended", Shows::Verify(offset(1)), |copy| {
        copy.put(full + at::SHIFT, &[24]).mend();
    });
    base.case("line: shift 1, mended", Shows::Somewhere, |copy| {
        copy.put(full + at::SHIFT, &[1]).mend();
    });
    for bit in [0, 6] {
        base.case(format!("line: base: bit {bit} flipped, mended"), Shows::Somewhere, |copy| {
            copy.flip(full + at::BASE, bit).mend();
        });
    }
    for base_field in [[0xff; 6], [0, 0, 0, 0, 0, 0x80]] {
        let name = format!("line: base {base_field:02x?}, mended");
        base.case(name, Shows::Verify(offset(0)), |copy| {
            copy.put(full + at::BASE, &base_field).mend();
        })
        .get(&first_key, Answer::Corrupt);
    }
    base.case("line: overflow bits cleared, mended", Shows::Verify(moved.at as u64), |copy| {
        copy.put(full + at::OVERFLOW, &[0]).mend();
    })
    .get(&moved_key, Answer::Absent);
    base.case("line: cleared, mended", Shows::Verify(first.at as u64), |copy| {
        copy.put(full, &[0; at::LEN]).mend();
    })
    .get(&first_key, Answer::Absent);
    let next = full + at::LEN;
    let lines = base.anatomy.bytes[full..next + at::LEN].to_vec();
    base.case("line: exchanged with the next, mended", Shows::Somewhere, |copy| {
        copy.put(full, &lines[at::LEN..]).put(next, &lines[..at::LEN]).mend();
    });
    base.case(
        "line: the next is the same, mended",
        Shows::Verify(next as u64 + at::OFFSETS as u64),
        |copy| {
            copy.put(next, &lines[..at::LEN]).mend();
        },
    );
    let count = base.anatomy.lines().count() as u32;
    let probe = base.anatomy.number(header::MAX_PROBE, 4) as u32;
    for (name, probe) in [("the same", probe), ("greatest", count - 1)] {
        let name = format!("overflow bits set everywhere, {name} max_probe");
        base.case(name, Shows::Nowhere, |copy| {
            copy.put(header::MAX_PROBE, &probe.to_le_bytes());
            copy.overflow_everywhere();
            copy.mend();
        });
    }
}
