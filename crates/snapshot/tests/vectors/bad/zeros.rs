//! Padding, which must be zero. Checksums that cover it are correct.

use crate::case::{Base, Shows};
use nuthatch_snapshot::layout::{directory, header, record};

pub(crate) fn broken(base: &mut Base) {
    let mut places = between_sections(base);
    let entry = base.anatomy.entry(0);
    let data = base.anatomy.data();
    let end = data.start + base.anatomy.number(entry + directory::DATA_LEN, 8);
    places
        .extend([("after the partition", end), ("of the data", data.end - record::MAX_SHORT_LEN)]);
    places.push(("of the file", data.end - 1));
    places.extend(between_records(base).map(|at| ("between two records", at)));
    for (name, at) in places {
        let name = format!("zeros: byte {at}, {name}");
        base.case(name, Shows::Verify(at as u64), |copy| copy.put(at, &[1]).mend());
    }
}

/// Adds cases in which the data of a partition has one more byte: zero is valid, another is not.
pub(crate) fn in_a_partition(base: &mut Base) {
    let field = base.anatomy.entry(0) + directory::DATA_LEN;
    let len = base.anatomy.number(field, 8);
    let at = base.anatomy.data().start + len;
    for (byte, shows) in [(0, Shows::Nowhere), (1, Shows::Verify(at as u64))] {
        base.case(format!("zeros: byte {byte} at the end of a partition"), shows, |copy| {
            copy.put(field, &(len as u64 + 1).to_le_bytes()).put(at, &[byte]).mend();
        });
    }
}

fn between_sections(base: &Base) -> Vec<(&'static str, usize)> {
    let fields = [header::DICTIONARY, header::DIRECTORY, header::INDEX, header::DATA];
    let sections = fields.map(|field| base.anatomy.section(field));
    let gaps = sections.windows(2).map(|pair| pair[0].end..pair[1].start);
    let gaps = gaps.filter(|gap| !gap.is_empty());
    gaps.flat_map(|gap| [gap.start, gap.end - 1].map(|at| ("between sections", at))).collect()
}

/// Returns the last byte between two records with a gap between them.
fn between_records(base: &Base) -> Option<usize> {
    let places = base.anatomy.places();
    let gap = places.windows(2).find(|pair| {
        let tag = base.anatomy.bytes[pair[0].at];
        let value = usize::from(base.anatomy.bytes[pair[0].at + 2]);
        tag & !record::TYPE_MASK == 0 && pair[0].after_key + value < pair[1].at
    });
    gap.map(|pair| pair[1].at - 1)
}
