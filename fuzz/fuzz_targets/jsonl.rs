//! Parses arbitrary bytes as JSON lines. The parsed rows survive a round trip through JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::JsonRows;
use nuthatch_import::parse_jsonl;

fuzz_target!(|bytes: &[u8]| {
    let mut rows = JsonRows::default();
    // The rows before an error are checked too.
    let _ = parse_jsonl(bytes, &mut rows);
    rows.check();
});
