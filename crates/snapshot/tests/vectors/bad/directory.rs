//! Damage to the directory.

use super::bits;
use crate::case::{Base, Shows};
use nuthatch_snapshot::layout::{directory as at, header};

const FIELDS: [(&str, usize); 4] = [
    ("data_offset", at::DATA_OFFSET),
    ("data_len", at::DATA_LEN),
    ("index_hash", at::INDEX_HASH),
    ("data_hash", at::DATA_HASH),
];

pub(crate) fn one_partition(base: &mut Base) {
    let entry = base.anatomy.entry(0);
    for (name, field) in FIELDS {
        for bit in bits(8) {
            let shows = Shows::Verify(header::DIRECTORY_HASH as u64);
            base.case(format!("directory: {name}: bit {bit} flipped"), shows, |copy| {
                copy.flip(entry + field, bit);
            });
        }
        for bit in [31, 63] {
            let shows = Shows::Verify((entry + field) as u64);
            base.case(format!("directory: {name}: bit {bit} flipped, mended"), shows, |copy| {
                copy.flip(entry + field, bit).mend_directory();
            });
        }
    }
    let len = base.anatomy.number(entry + at::DATA_LEN, 8);
    for other in [0, len - 1, len + 1, len + 64] {
        let name = format!("directory: data_len {other} instead of {len}, mended");
        base.case(name, Shows::Somewhere, |copy| {
            copy.put(entry + at::DATA_LEN, &(other as u64).to_le_bytes()).mend();
        });
    }
}

pub(crate) fn two_partitions(base: &mut Base) {
    let (first, second) = (base.anatomy.entry(0), base.anatomy.entry(1));
    let entries = base.anatomy.bytes[first..second + at::ENTRY_LEN].to_vec();
    let exchanged = [&entries[at::ENTRY_LEN..], &entries[..at::ENTRY_LEN]].concat();
    let mut case = |name: &str, shows: usize, at: usize, bytes: &[u8]| {
        base.case(name, Shows::Verify(shows as u64), |copy| copy.put(at, bytes).mend_directory());
    };
    case("directory: entries exchanged, mended", first, first, &exchanged);
    case("directory: one entry twice, mended", second, second, &entries[..at::ENTRY_LEN]);
    let hash = &entries[at::ENTRY_LEN + at::INDEX_HASH..];
    let field = first + at::INDEX_HASH;
    case("directory: another partition's checksums, mended", field, field, hash);
    let offset = base.anatomy.number(second, 8) as u64 + 64;
    base.case(
        "directory: second data_offset 64 too great, mended",
        Shows::Verify(second as u64),
        |copy| {
            copy.put(second, &offset.to_le_bytes()).mend_directory();
        },
    );
    let index = base.anatomy.index(1).start;
    let shows = Shows::Verify((second + at::INDEX_HASH) as u64);
    base.case("index: a line of the second partition changed", shows, |copy| {
        copy.flip(index, 0);
    });
    let data = base.anatomy.data().start + offset as usize;
    let shows = Shows::Verify((second + at::DATA_HASH) as u64);
    base.case("data: a record of the second partition changed", shows, |copy| {
        copy.flip(data, 0);
    });
    // In partitions of more than 256 lines, only this limit bounds a lookup.
    base.case("overflow bits set everywhere, max_probe 255", Shows::Nowhere, |copy| {
        copy.put(header::MAX_PROBE, &255_u32.to_le_bytes());
        copy.overflow_everywhere();
        copy.mend();
    });
}
