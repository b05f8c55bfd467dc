//! The damaged files, part by part.

mod directory;
mod header;
mod index;
mod length;
mod records;
mod values;
mod zeros;

use crate::case::{Base, Case};

/// Bits of a field of so many bytes that stand for all others: the lowest, one in the middle, the
/// highest.
fn bits(len: usize) -> [usize; 3] {
    [0, 4 * len - 1, 8 * len - 1]
}

/// All cases. `base` gives a good file by its name.
pub(crate) fn cases(base: impl Fn(&str) -> Base) -> Vec<Case> {
    let parts: [(&str, fn(&mut Base)); 18] = [
        ("zstd-dictionary", length::cut_and_extended),
        ("empty", length::too_little_data),
        ("overflow", length::other_lengths_of_the_data),
        ("overflow", header::flipped),
        ("overflow", header::mended),
        ("overflow", header::versions_and_flags),
        ("overflow", header::geometry),
        ("overflow", header::counts),
        ("zstd-dictionary", header::dictionary),
        ("overflow", directory::one_partition),
        ("entries-20000", directory::two_partitions),
        ("overflow", index::flipped),
        ("overflow", index::slots),
        ("overflow", index::lines),
        ("types", records::of_types),
        ("shared", records::shared),
        ("types", values::of_types),
        ("zstd", values::frames),
    ];
    let zeros = ["zstd-dictionary", "types", "shared"].map(|name| (name, zeros::broken as fn(&mut Base)));
    let parts = parts.into_iter().chain(zeros);
    parts.flat_map(|(name, part)| {
        let mut base = base(name);
        part(&mut base);
        base.cases
    })
    .collect()
}
