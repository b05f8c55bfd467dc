//! Files that are too short or too long.

use crate::case::{Base, Shows};
use nuthatch_snapshot::layout::header;

/// Adds files cut within the header and at, before and after every boundary of a section.
pub(crate) fn cut_and_extended(base: &mut Base) {
    let whole = base.anatomy.bytes.len();
    for len in [0, 7, 8, 9, 511] {
        let at = if len < 8 { 0 } else { len as u64 };
        let code = if len < 8 { "not-a-snapshot" } else { "corrupt" };
        base.case(format!("cut to {len} bytes"), Shows::Open(code, at), |copy| {
            copy.bytes.truncate(len);
        });
    }
    for (name, field) in [
        ("dictionary", header::DICTIONARY),
        ("directory", header::DIRECTORY),
        ("index", header::INDEX),
        ("data", header::DATA),
    ] {
        let section = base.anatomy.section(field);
        for (edge, at) in [("start", section.start), ("end", section.end)] {
            for (place, len) in [("before", at - 1), ("at", at), ("after", at + 1)] {
                // The header precedes the first section. Nothing follows the last one.
                if (512..whole).contains(&len) {
                    let name = format!("cut {place} the {edge} of the {name}");
                    let shows = Shows::Open("corrupt", 16);
                    base.case(name, shows, |copy| copy.bytes.truncate(len));
                }
            }
        }
    }
    for (more, byte) in [(1, 0), (64, 0), (1, 1), (64, 0xff)] {
        let name = format!("{more} bytes {byte:#04x} after the end");
        let shows = Shows::Open("corrupt", 16);
        base.case(name, shows, |copy| copy.bytes.resize(whole + more, byte));
    }
}

/// Adds a case in which the length of the file and of the data section is changed by `change`.
fn resized(base: &mut Base, name: &str, shows: Shows, change: isize) {
    let whole = base.anatomy.bytes.len().saturating_add_signed(change);
    let data = base.anatomy.data().len().saturating_add_signed(change);
    base.case(name, shows, |copy| {
        copy.bytes.resize(whole, 0);
        copy.put(header::FILE_LEN, &(whole as u64).to_le_bytes());
        copy.put(header::DATA + 8, &(data as u64).to_le_bytes());
        copy.mend_header();
    });
}

const DATA_LEN: u64 = header::DATA as u64 + 8;

pub(crate) fn too_little_data(base: &mut Base) {
    resized(base, "data of 512 bytes", Shows::Open("corrupt", DATA_LEN), -64);
    resized(base, "data of no bytes", Shows::Open("corrupt", DATA_LEN), -576);
}

pub(crate) fn other_lengths_of_the_data(base: &mut Base) {
    resized(base, "64 zeros too few", Shows::Verify(DATA_LEN), -64);
    resized(base, "64 zeros too many", Shows::Verify(DATA_LEN), 64);
    let less = base.anatomy.data().len() as u64 - 64;
    base.case("data that ends before the file", Shows::Open("corrupt", DATA_LEN), |copy| {
        copy.put(header::DATA + 8, &less.to_le_bytes()).mend_header();
    });
    resized(base, "data of no multiple of 64", Shows::Open("corrupt", DATA_LEN), -1);
}
