//! The names of the files.

use crate::layout::{
    CLAIMS_NAME, INDEX_NAME, INDEX_NEW, PINS_NAME, PINS_NEW, SEGMENT_ENDING, SETTINGS_NAME,
    SETTINGS_NEW,
};

/// The name of a segment.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:016x}{SEGMENT_ENDING}")
}

/// The number in the name of a segment.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT_ENDING)?;
    let number = u64::from_str_radix(digits, 16).ok().filter(|number| *number != 0)?;
    (segment_name(number) == name).then_some(number)
}

/// Returns whether the name of a file in the folder is one that this crate uses.
pub(crate) fn is_own(name: &str) -> bool {
    let names =
        [INDEX_NAME, INDEX_NEW, SETTINGS_NAME, SETTINGS_NEW, PINS_NAME, PINS_NEW, CLAIMS_NAME];
    segment_number(name).is_some() || names.contains(&name)
}
