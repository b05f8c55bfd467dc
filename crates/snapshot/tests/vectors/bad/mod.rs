//! The damaged files, by part of the file.

mod additional;
mod directory;
mod edges;
mod header;
mod index;
mod length;
mod manifest;
mod records;
mod values;
mod zeros;

use crate::case::{Base, Case};

/// Returns representative bits of a field of `len` bytes: the lowest, one in the middle, the
/// highest.
fn bits(len: usize) -> [usize; 3] {
    [0, 4 * len - 1, 8 * len - 1]
}

/// The cases that are also committed as files, for readers that apply no patches: name of the file,
/// base and name of the case.
pub(crate) const FILES: [(&str, &str, &str); 16] = [
    ("no-bytes", "zstd-dictionary", "cut to 0 bytes"),
    ("cut-in-the-header", "zstd-dictionary", "cut to 511 bytes"),
    ("cut-in-the-data", "zstd-dictionary", "cut after the start of the data"),
    ("other-magic", "overflow", "magic: bit 0 flipped"),
    ("newer-major-version", "overflow", "version 2.0"),
    ("newer-minor-version", "overflow", "version 1.1 with a field that 1.0 calls reserved"),
    ("unknown-flag", "overflow", "flag 8"),
    ("header-checksum", "overflow", "seed: bit 0 flipped"),
    ("lengths-overflow", "overflow", "2^28 partitions of 2^30 lines"),
    ("index-checksum", "overflow", "line: overflow: bit 0 flipped"),
    ("offset-outside", "overflow", "line: offset 0 outside of the data, mended"),
    ("overflow-everywhere", "overflow", "overflow bits set everywhere, greatest max_probe"),
    ("reference-outside", "shared", "record: shared: a reference to 2^48 - 1"),
    ("string-not-utf-8", "types", "value: string that begins with the byte 0xff"),
    ("list-ends-outside", "types", "value: list of string: an end of 2^32 - 1"),
    ("frame-claims-too-much", "zstd", "value: frame: claims 2^62 bytes"),
];

/// The base of some cases, and the function that adds them.
type Part = (&'static str, fn(&mut Base));

const PARTS: &[Part] = &[
    ("zstd-dictionary", length::cut_and_extended),
    ("empty", length::too_little_data),
    ("overflow", length::other_lengths_of_the_data),
    ("overflow", header::flipped),
    ("overflow", header::mended),
    ("overflow", header::versions_and_flags),
    ("overflow", header::geometry),
    ("overflow", header::counts),
    ("zstd-dictionary", header::dictionary),
    ("metadata", additional::entry),
    ("metadata", additional::metadata),
    ("set-3", manifest::header),
    ("set-3", manifest::rest),
    ("overflow", directory::one_partition),
    ("entries-20000", directory::two_partitions),
    ("overflow", index::flipped),
    ("overflow", index::slots),
    ("overflow", index::lines),
    ("overflow", edges::records),
    ("types", records::of_types),
    ("shared", records::shared),
    ("types", values::of_types),
    ("zstd", values::frames),
    ("types", zeros::in_a_partition),
    ("types", zeros::broken),
    ("shared", zeros::broken),
    ("zstd-dictionary", zeros::broken),
];

/// Returns all cases. `base` returns a good file by its name.
pub(crate) fn cases(base: impl Fn(&str) -> Base) -> Vec<Case> {
    let made = PARTS.iter().flat_map(|(name, part)| {
        let mut base = base(name);
        part(&mut base);
        base.cases
    });
    made.collect()
}
