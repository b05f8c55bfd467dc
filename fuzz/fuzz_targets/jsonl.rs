//! Any bytes as JSON lines: what is taken from them is written as JSON that reads as the same rows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::JsonRows;
use nuthatch_import::parse_jsonl;

fuzz_target!(|bytes: &[u8]| {
    let mut rows = JsonRows::default();
    // Rows before an error are rows.
    let _ = parse_jsonl(bytes, &mut rows);
    rows.check();
});
