//! The names of objects, and ages, in the output.

use nuthatch_chunks::{Description, Key};
use nuthatch_cli::output::tsv_escape;
use std::time::Duration;

/// Returns the name of an object in output and arguments: its address, its name, or the hash of its
/// bytes.
pub(super) fn object_name(key: &Key) -> String {
    match key.describe() {
        Description::Named(name) => String::from_utf8_lossy(&name).into_owned(),
        Description::Blocks { address, .. } => address,
        Description::Metadata { address } => format!("metadata of {address}"),
        Description::Content(hash) => format!("blake3:{}", hexadecimal(&hash)),
        _ => "(of a newer version)".to_owned(),
    }
}

/// Returns the name of an object, escaped for a terminal.
pub(super) fn escaped_name(key: &Key) -> String {
    escaped(&object_name(key))
}

/// Returns a text without characters that end the line or move the cursor.
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

/// Formats an age: `45 s`, `12 min`, `3 h`, `20 d`.
pub(super) fn format_age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
