//! Damage to the manifest of a set.

use super::bits;
use crate::case::{Base, Copy, Shows};
use nuthatch_snapshot::layout::{manifest as at, manifest_entry as entry};
use xxhash_rust::xxh3::xxh3_64;

const fn open(offset: usize) -> Shows {
    Shows::Open("corrupt", offset as u64)
}

const UNSUPPORTED: fn(usize) -> Shows = |offset| Shows::Open("unsupported", offset as u64);

/// A field of the header: name, offset, length, and the errors for a flipped lowest and highest bit
/// if the checksum of the header is correct.
type Field = (&'static str, usize, usize, Shows, Shows);

fn fields() -> Vec<Field> {
    let magic = Shows::Open("not-a-snapshot", 0);
    let (major, flags) = (UNSUPPORTED(at::VERSION_MAJOR), UNSUPPORTED(at::FLAGS));
    vec![
        ("magic", at::MAGIC, 8, magic, magic),
        ("version_major", at::VERSION_MAJOR, 2, major, major),
        ("version_minor", at::VERSION_MINOR, 2, Shows::Nowhere, Shows::Nowhere),
        ("header_len", at::HEADER_LEN, 4, open(at::HEADER_LEN), open(at::HEADER_LEN)),
        ("file_len", at::FILE_LEN, 8, open(at::FILE_LEN), open(at::FILE_LEN)),
        // The first shard has another seed then.
        ("seed", at::SEED, 8, open(24), open(24)),
        ("entries", at::ENTRIES, 8, open(at::ENTRIES), open(at::ENTRIES)),
        ("shards", at::SHARDS, 4, open(at::FILE_LEN), open(at::SHARDS)),
        ("flags", at::FLAGS, 4, flags, flags),
        ("metadata_len", at::METADATA_LEN, 8, open(at::FILE_LEN), open(at::METADATA_LEN)),
        ("table_hash", at::TABLE_HASH, 8, open(at::TABLE_HASH), open(at::TABLE_HASH)),
        ("metadata_hash", at::METADATA_HASH, 8, open(at::METADATA_HASH), open(at::METADATA_HASH)),
        ("reserved", at::RESERVED, 16, open(at::RESERVED), open(at::HASH - 1)),
    ]
}

fn mend(copy: &mut Copy<'_>) {
    let hash = xxh3_64(&copy.bytes[..at::HASH]);
    copy.put(at::HASH, &hash.to_le_bytes());
}

/// Adds cases with one flipped bit of the header, with and without a corrected checksum.
pub(crate) fn header(base: &mut Base) {
    let mut fields = fields();
    fields.push(("header_hash", at::HASH, 8, Shows::Nowhere, Shows::Nowhere));
    for (name, at, len, low, high) in fields {
        let [first, middle, last] = bits(len);
        let flipped = match at {
            at::MAGIC => Shows::Open("not-a-snapshot", 0),
            at::VERSION_MAJOR => UNSUPPORTED(at::VERSION_MAJOR),
            _ => open(at::HASH),
        };
        for bit in [first, middle, last] {
            base.case(format!("manifest: {name}: bit {bit} flipped"), flipped, |copy| {
                copy.flip(at, bit);
            });
        }
        if at == at::HASH {
            continue;
        }
        for (bit, shows) in [(first, low), (last, high)] {
            base.case(format!("manifest: {name}: bit {bit} flipped, mended"), shows, |copy| {
                copy.flip(at, bit);
                mend(copy);
            });
        }
    }
    for (name, at, bytes, shows) in [
        ("no shards", at::SHARDS, &[0, 0, 0, 0][..], open(at::SHARDS)),
        ("65,537 shards", at::SHARDS, &[1, 0, 1, 0], open(at::SHARDS)),
        ("version 1.1 with a field that 1.0 calls reserved", at::RESERVED, &[7], Shows::Nowhere),
    ] {
        base.case(format!("manifest: {name}"), shows, |copy| {
            copy.put(at, bytes);
            if at == at::RESERVED {
                copy.put(at::VERSION_MINOR, &[1]);
            }
            mend(copy);
        });
    }
}

/// Adds damage to the table, the metadata and the length of a manifest.
pub(crate) fn rest(base: &mut Base) {
    let shards = base.anatomy.number(at::SHARDS, 4);
    let table = at::LEN..at::LEN + shards * entry::LEN;
    let len = base.anatomy.bytes.len();
    for cut in [8, at::LEN - 1] {
        base.case(format!("manifest: cut to {cut} bytes"), open(cut), |copy| {
            copy.bytes.truncate(cut);
        });
    }
    for length in [at::LEN, len - 1, len + 1] {
        base.case(format!("manifest: {length} bytes"), open(at::FILE_LEN), |copy| {
            copy.bytes.resize(length, 0);
        });
    }
    base.case("manifest: table: bit 0 flipped", open(at::TABLE_HASH), |copy| {
        copy.flip(table.start, 0);
    });
    base.case("manifest: metadata: bit 0 flipped", open(at::METADATA_HASH), |copy| {
        copy.flip(table.end, 0);
    });
    let mut change = |name: &str, field: usize, by: u8, shows: Shows| {
        base.case(format!("manifest: {name}, mended"), shows, |copy| {
            copy.bytes[table.start + field] ^= by;
            let hash = xxh3_64(&copy.bytes[table.clone()]);
            copy.put(at::TABLE_HASH, &hash.to_le_bytes());
            mend(copy);
        });
    };
    // Offsets of these fields in the header of the shard.
    change("another length of a shard", entry::FILE_LEN, 1, open(16));
    change("another number of entries of a shard", entry::ENTRIES, 1, open(at::ENTRIES));
    base.case(
        "manifest: metadata that is cut off, mended",
        Shows::Verify(table.end as u64),
        |copy| {
            copy.put(table.end + 2, &[0xff]);
            let hash = xxh3_64(&copy.bytes[table.end..]);
            copy.put(at::METADATA_HASH, &hash.to_le_bytes());
            mend(copy);
        },
    );
}
