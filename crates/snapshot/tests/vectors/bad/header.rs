//! Damage to the header.

use super::bits;
use crate::case::{Base, Shows};
use nuthatch_snapshot::layout::header as at;

const fn open(offset: usize) -> Shows {
    Shows::Open("corrupt", offset as u64)
}

const fn verify(offset: usize) -> Shows {
    Shows::Verify(offset as u64)
}

const UNSUPPORTED: fn(usize) -> Shows = |offset| Shows::Open("unsupported", offset as u64);

/// Every field: name, offset, length, and the errors for a flipped lowest and highest bit if the
/// checksum of the header is correct.
fn fields() -> Vec<(&'static str, usize, usize, Shows, Shows)> {
    let magic = Shows::Open("not-a-snapshot", 0);
    let (major, flags) = (UNSUPPORTED(at::VERSION_MAJOR), UNSUPPORTED(at::FLAGS));
    let mut fields = vec![
        ("magic", at::MAGIC, 8, magic, magic),
        ("version_major", at::VERSION_MAJOR, 2, major, major),
        ("version_minor", at::VERSION_MINOR, 2, Shows::Nowhere, Shows::Nowhere),
        ("seed", at::SEED, 8, Shows::Somewhere, Shows::Somewhere),
        // Twice as many partitions require a directory of twice the length.
        (
            "partition_bits",
            at::PARTITION_BITS,
            4,
            open(at::DIRECTORY + 8),
            open(at::PARTITION_BITS),
        ),
        (
            "lines_per_partition",
            at::LINES_PER_PARTITION,
            4,
            open(at::INDEX + 8),
            open(at::INDEX + 8),
        ),
        // A higher value is valid.
        ("max_probe", at::MAX_PROBE, 4, Shows::Nowhere, open(at::MAX_PROBE)),
        ("flags", at::FLAGS, 4, open(at::COMPRESSED_ENTRIES), flags),
        ("entries", at::ENTRIES, 8, open(at::ENTRIES_BY_TYPE), open(at::ENTRIES_BY_TYPE)),
        ("index_kind", at::INDEX_KIND, 4, UNSUPPORTED(at::INDEX_KIND), UNSUPPORTED(at::INDEX_KIND)),
        ("shard", at::SHARD, 4, open(at::SHARD), open(at::SHARD)),
        // Every file is valid as the only shard of a set.
        ("shards", at::SHARDS, 4, Shows::Nowhere, open(at::SHARDS)),
        (
            "additional_count",
            at::ADDITIONAL_COUNT,
            4,
            open(at::ADDITIONAL),
            open(at::ADDITIONAL_COUNT),
        ),
        ("additional", at::ADDITIONAL, 128, open(at::ADDITIONAL), open(at::RESERVED - 1)),
        ("reserved", at::RESERVED, at::HASH - at::RESERVED, open(at::RESERVED), open(at::HASH - 1)),
    ];
    // Damage to these fields is reported at the field.
    for (name, at, len) in [("header_len", at::HEADER_LEN, 4), ("file_len", at::FILE_LEN, 8)] {
        fields.push((name, at, len, open(at), open(at)));
    }
    for (name, at) in [
        ("dictionary offset", at::DICTIONARY),
        ("dictionary length", at::DICTIONARY + 8),
        ("directory offset", at::DIRECTORY),
        ("directory length", at::DIRECTORY + 8),
        ("index offset", at::INDEX),
        ("index length", at::INDEX + 8),
        ("data offset", at::DATA),
        ("data length", at::DATA + 8),
        ("shared_entries", at::SHARED_ENTRIES),
        ("compressed_entries", at::COMPRESSED_ENTRIES),
    ] {
        fields.push((name, at, 8, open(at), open(at)));
    }
    for (name, at) in [
        ("dictionary_hash", at::DICTIONARY_HASH),
        ("directory_hash", at::DIRECTORY_HASH),
        ("key_bytes", at::KEY_BYTES),
        ("value_bytes", at::VALUE_BYTES),
        ("stored_value_bytes", at::STORED_VALUE_BYTES),
    ] {
        fields.push((name, at, 8, verify(at), verify(at)));
    }
    fields
}

/// Adds cases with one flipped bit, which the checksum detects.
pub(crate) fn flipped(base: &mut Base) {
    let mut fields = fields();
    fields.push(("entries_by_type", at::ENTRIES_BY_TYPE, 128, Shows::Nowhere, Shows::Nowhere));
    fields.push(("header_hash", at::HASH, 8, Shows::Nowhere, Shows::Nowhere));
    for (name, at, len, ..) in fields {
        let shows = match at {
            at::MAGIC => Shows::Open("not-a-snapshot", 0),
            at::VERSION_MAJOR => UNSUPPORTED(at::VERSION_MAJOR),
            _ => open(at::HASH),
        };
        for bit in bits(len) {
            base.case(format!("{name}: bit {bit} flipped"), shows, |copy| {
                copy.flip(at, bit);
            });
        }
    }
}

/// Adds cases with one flipped bit and a corrected checksum.
pub(crate) fn mended(base: &mut Base) {
    for (name, at, len, low, high) in fields() {
        let [first, _, last] = bits(len);
        for (bit, shows) in [(first, low), (last, high)] {
            base.case(format!("{name}: bit {bit} flipped, mended"), shows, |copy| {
                copy.flip(at, bit).mend_header();
            });
        }
    }
    for code in 0..16 {
        for bit in [0, 63] {
            let name = format!("entries_by_type {code}: bit {bit} flipped, mended");
            let is_later_type = code > 10;
            let field = at::ENTRIES_BY_TYPE + 8 * code;
            let shows = if is_later_type { UNSUPPORTED(field) } else { open(at::ENTRIES_BY_TYPE) };
            base.case(name, shows, |copy| {
                copy.flip(at::ENTRIES_BY_TYPE + 8 * code, bit).mend_header();
            });
        }
    }
}

fn put(base: &mut Base, name: &str, shows: Shows, fields: &[(usize, &[u8])]) {
    base.case(name, shows, |copy| {
        for (at, bytes) in fields {
            copy.put(*at, bytes);
        }
        copy.mend_header();
    });
}

pub(crate) fn versions_and_flags(base: &mut Base) {
    for major in [0_u16, 2, u16::MAX] {
        let name = format!("version {major}.0");
        put(
            base,
            &name,
            UNSUPPORTED(at::VERSION_MAJOR),
            &[(at::VERSION_MAJOR, &major.to_le_bytes())],
        );
    }
    put(base, "version 1.1", Shows::Nowhere, &[(at::VERSION_MINOR, &[1, 0])]);
    put(
        base,
        "version 1.1 with a field that 1.0 calls reserved",
        Shows::Nowhere,
        &[(at::VERSION_MINOR, &[1, 0]), (at::RESERVED, &[0xab; 16])],
    );
    for bit in 3..32 {
        let flags = (1_u32 << bit).to_le_bytes();
        put(
            base,
            &format!("flag {}", 1_u32 << bit),
            UNSUPPORTED(at::FLAGS),
            &[(at::FLAGS, &flags)],
        );
    }
    for (flag, shows) in [(2, open(at::DICTIONARY + 8)), (4, open(at::SHARED_ENTRIES))] {
        put(base, &format!("flag {flag} without cause"), shows, &[(at::FLAGS, &[flag])]);
    }
    let text = "a text that was converted: the line ends are others";
    put(base, text, Shows::Open("not-a-snapshot", 0), &[(at::MAGIC, b"\x89NUT\n\x1a\n\0")]);
    let text = "a text that was converted: the high bit is gone";
    put(base, text, Shows::Open("not-a-snapshot", 0), &[(at::MAGIC, b"\x09")]);
}

pub(crate) fn geometry(base: &mut Base) {
    let greatest = u64::MAX.to_le_bytes();
    for bits in [29_u32, 63, 64, u32::MAX] {
        let field = (at::PARTITION_BITS, &bits.to_le_bytes()[..]);
        put(base, &format!("2^{bits} partitions"), open(at::PARTITION_BITS), &[field]);
    }
    put(base, "no lines", open(at::LINES_PER_PARTITION), &[(at::LINES_PER_PARTITION, &[0; 4])]);
    for (lines, number) in [("2^30", 1_u32 << 30), ("2^32 - 1", u32::MAX)] {
        let fields =
            [(at::PARTITION_BITS, &[28][..]), (at::LINES_PER_PARTITION, &number.to_le_bytes())];
        let name = format!("2^28 partitions of {lines} lines");
        put(base, &name, open(at::DIRECTORY + 8), &fields);
    }
    let lines = base.anatomy.number(at::LINES_PER_PARTITION, 4) as u32;
    for probe in [lines, 255, 256, u32::MAX] {
        let name = format!("max_probe {probe} with {lines} lines");
        put(base, &name, open(at::MAX_PROBE), &[(at::MAX_PROBE, &probe.to_le_bytes())]);
    }
    put(base, "max_probe 0 where keys lie farther", Shows::Somewhere, &[(at::MAX_PROBE, &[0])]);
    for (name, field) in [
        ("dictionary", at::DICTIONARY),
        ("directory", at::DIRECTORY),
        ("index", at::INDEX),
        ("data", at::DATA),
    ] {
        put(base, &format!("{name} at 2^64 - 1"), open(field), &[(field, &greatest)]);
        let name = format!("{name} of 2^64 - 1 bytes");
        put(base, &name, open(field + 8), &[(field + 8, &greatest)]);
    }
    let (directory, index) = (at::DIRECTORY..at::DIRECTORY + 16, at::INDEX..at::INDEX + 16);
    let sections =
        [&base.anatomy.bytes[index].to_vec()[..], &base.anatomy.bytes[directory]].concat();
    put(base, "directory and index exchanged", open(at::DIRECTORY), &[(at::DIRECTORY, &sections)]);
    let whole = base.anatomy.section(at::INDEX);
    let over = [whole.start as u64, (base.anatomy.bytes.len() - whole.start) as u64 + 1];
    let over = over.map(u64::to_le_bytes).concat();
    put(base, "index that ends after the file", open(at::INDEX + 8), &[(at::INDEX, &over)]);
}

pub(crate) fn counts(base: &mut Base) {
    const I64: usize = at::ENTRIES_BY_TYPE + 8 * 4;
    const F64: usize = I64 + 8;
    let count = |count: u64| count.to_le_bytes();
    let entries = base.anatomy.number(at::ENTRIES, 8) as u64;
    let slots = base.anatomy.section(at::INDEX).len() as u64 / 64 * 14;
    for (name, number) in [("one entry more", entries + 1), ("one entry less", entries - 1)] {
        let fields = [(at::ENTRIES, &count(number)[..]), (I64, &count(number))];
        put(base, name, verify(at::ENTRIES), &fields);
    }
    for number in [slots + 1, u64::MAX] {
        let fields = [(at::ENTRIES, &count(number)[..]), (I64, &count(number))];
        put(base, &format!("{number} entries in {slots} slots"), open(at::ENTRIES), &fields);
    }
    let fields = [(I64, &count(entries - 1)[..]), (F64, &count(1))];
    put(base, "an i64 counted as an f64", verify(at::ENTRIES_BY_TYPE), &fields);
    let fields = [(I64, &count(entries - 1)[..]), (at::ENTRIES_BY_TYPE, &count(1))];
    put(base, "an entry of type 0", open(at::ENTRIES_BY_TYPE), &fields);
    let fields = [(I64, &count(u64::MAX)[..]), (F64, &count(entries + 1))];
    put(base, "counts by type whose sum overflows", open(at::ENTRIES_BY_TYPE), &fields);
    for (name, field, flag) in
        [("shared", at::SHARED_ENTRIES, 4), ("compressed", at::COMPRESSED_ENTRIES, 1)]
    {
        let fields = [(at::FLAGS, &[flag][..]), (field, &count(1))];
        put(base, &format!("one {name} entry too many"), verify(field), &fields);
        let fields = [(at::FLAGS, &[flag][..]), (field, &count(entries + 1))];
        put(base, &format!("more {name} entries than entries"), open(field), &fields);
    }
}

/// Adds damage to the dictionary, which is detected when the file is opened.
pub(crate) fn dictionary(base: &mut Base) {
    let section = base.anatomy.section(at::DICTIONARY);
    for at in [section.start, section.start + section.len() / 2, section.end - 1] {
        base.case(format!("dictionary: byte {at} changed"), open(at::DICTIONARY_HASH), |copy| {
            copy.flip(at, 0);
        });
    }
    let hash = open(at::DICTIONARY_HASH);
    base.case("dictionary_hash: bit 0 flipped, mended", hash, |copy| {
        copy.flip(at::DICTIONARY_HASH, 0).mend_header();
    });
    put(base, "a dictionary without its flag", open(at::DICTIONARY + 8), &[(at::FLAGS, &[1])]);
    put(
        base,
        "compressed entries without their flag",
        open(at::COMPRESSED_ENTRIES),
        &[(at::FLAGS, &[2])],
    );
}
