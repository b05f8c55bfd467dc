//! Damage to additional sections and to the metadata.

use super::bits;
use crate::case::{Base, Copy, Shows};
use nuthatch_snapshot::layout::{additional, header as at};
use xxhash_rust::xxh3::xxh3_64;

const ENTRY: usize = at::ADDITIONAL;

const fn open(offset: usize) -> Shows {
    Shows::Open("corrupt", offset as u64)
}

const fn verify(offset: usize) -> Shows {
    Shows::Verify(offset as u64)
}

/// Adds damage to the entry of the metadata in the header.
pub(crate) fn entry(base: &mut Base) {
    for (name, at, len, low, high) in [
        ("additional_count", at::ADDITIONAL_COUNT, 4, open(ENTRY), open(at::ADDITIONAL_COUNT)),
        // Without the metadata, a section of this kind is unknown and not required.
        ("kind", ENTRY + additional::KIND, 4, open(ENTRY), Shows::Nowhere),
        (
            "required",
            ENTRY + additional::REQUIRED,
            4,
            Shows::Nowhere,
            open(ENTRY + additional::REQUIRED),
        ),
        (
            "offset",
            ENTRY + additional::OFFSET,
            8,
            open(ENTRY + additional::OFFSET),
            open(ENTRY + additional::OFFSET),
        ),
        (
            "length",
            ENTRY + additional::LENGTH,
            8,
            open(ENTRY + additional::LENGTH),
            open(ENTRY + additional::LENGTH),
        ),
        (
            "checksum",
            ENTRY + additional::CHECKSUM,
            8,
            verify(ENTRY + additional::CHECKSUM),
            verify(ENTRY + additional::CHECKSUM),
        ),
    ] {
        // One section fewer leaves its entry, which must then be zero.
        let low = if at == at::ADDITIONAL_COUNT { open(at::DATA + 8) } else { low };
        let [first, _, last] = bits(len);
        for (bit, shows) in [(first, low), (last, high)] {
            base.case(format!("metadata: {name}: bit {bit} flipped, mended"), shows, |copy| {
                copy.flip(at, bit).mend_header();
            });
        }
    }
    let unknown = Shows::Open("unsupported", ENTRY as u64);
    base.case("a required section of kind 2", unknown, |copy| {
        copy.put(ENTRY, &[2, 0, 0, 0, 1]).mend_header();
    });
    base.case("a section of kind 2 that is not required", Shows::Nowhere, |copy| {
        copy.put(ENTRY, &[2]).mend_header();
    });
    base.case("5 additional sections", open(at::ADDITIONAL_COUNT), |copy| {
        copy.put(at::ADDITIONAL_COUNT, &[5]).mend_header();
    });
    let second = ENTRY + additional::ENTRY_LEN;
    base.case("metadata twice", open(ENTRY + additional::ENTRY_LEN), |copy| {
        let entry = copy.bytes[ENTRY..second].to_vec();
        copy.put(second, &entry).put(at::ADDITIONAL_COUNT, &[2]).mend_header();
    });
    base.case("an unused entry that is not zero", open(second + 31), |copy| {
        copy.put(second + 31, &[1]).mend_header();
    });
}

/// Corrects the checksum of the metadata.
fn mend_metadata(copy: &mut Copy<'_>, offset: usize) {
    let hash = xxh3_64(&copy.bytes[offset..]);
    copy.put(ENTRY + additional::CHECKSUM, &hash.to_le_bytes()).mend_header();
}

/// Adds damage to the pairs of the metadata.
pub(crate) fn metadata(base: &mut Base) {
    let start = base.anatomy.number(ENTRY + additional::OFFSET, 8);
    let checksum = verify(ENTRY + additional::CHECKSUM);
    base.case("metadata: bit 0 of the last byte flipped", checksum, |copy| {
        let last = copy.bytes.len() - 1;
        copy.flip(last, 0);
    });
    base.case("a byte before the metadata", verify(start - 1), |copy| {
        copy.put(start - 1, &[1]);
    });
    for (name, at, bytes) in [
        ("a name of 0 bytes", start, &[0, 0][..]),
        ("a name of 256 bytes", start, &[0, 1]),
        ("a name that ends after the section", start, &[255, 0]),
        ("a value of 2^32 - 1 bytes", start + 2, &[0xff; 4]),
        ("a name that is not UTF-8", start + 6, &[0xff]),
    ] {
        base.case(format!("metadata: {name}, mended"), verify(start), |copy| {
            copy.put(at, bytes);
            mend_metadata(copy, start);
        });
    }
    let second = start + 6 + base.anatomy.number(start, 2) + base.anatomy.number(start + 2, 4);
    base.case("metadata: names in descending order, mended", verify(second), |copy| {
        copy.put(second + 6, b"\0");
        mend_metadata(copy, start);
    });
}
