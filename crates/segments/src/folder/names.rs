//! The names of files in the folder.

use crate::layout::{
    FETCH_LOCKS_NAME, INDEX_NAME, INDEX_NEW, PINS_NAME, PINS_NEW, SEGMENT_ENDING, SETTINGS_NAME,
    SETTINGS_NEW,
};

/// Returns the file name of a segment.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:016x}{SEGMENT_ENDING}")
}

/// Returns the number in the file name of a segment, or `None` for other names.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT_ENDING)?;
    let number = u64::from_str_radix(digits, 16).ok().filter(|number| *number != 0)?;
    (segment_name(number) == name).then_some(number)
}

/// Returns whether this crate uses a file name.
pub(crate) fn is_own(name: &str) -> bool {
    let names =
        [INDEX_NAME, INDEX_NEW, SETTINGS_NAME, SETTINGS_NEW, PINS_NAME, PINS_NEW, FETCH_LOCKS_NAME];
    segment_number(name).is_some() || names.contains(&name)
}
