//! How objects are called in what is printed.

use nuthatch_chunks::{Description, Key};
use nuthatch_cli::output::tsv_escape;
use std::time::Duration;

/// What an object is called, and found by on the command line: its address, the name that was
/// made up for it, or the hash of its bytes.
pub(super) fn name_of(key: &Key) -> String {
    match key.describe() {
        Description::Named(name) => String::from_utf8_lossy(&name).into_owned(),
        Description::Blocks { address, .. } => address,
        Description::Metadata { address } => format!("metadata of {address}"),
        Description::Content(hash) => format!("blake3:{}", hexadecimal(&hash)),
        _ => "(of a newer version)".to_owned(),
    }
}

/// The same for a terminal: nothing in it ends the line or moves a cursor.
pub(super) fn shown_name(key: &Key) -> String {
    escaped(&name_of(key))
}

/// A text without anything that ends the line or moves a cursor.
pub(super) fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    tsv_escape(text.as_bytes(), &mut out);
    let out = String::from_utf8_lossy(&out);
    out.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// `45 s`, `12 min`, `3 h`, `20 d`.
pub(super) fn ago(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
