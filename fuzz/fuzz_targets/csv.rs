//! Parses arbitrary bytes as CSV with a column `key`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::JsonRows;
use nuthatch_import::parse_csv;

fuzz_target!(|bytes: &[u8]| {
    let mut rows = JsonRows::default();
    // The rows before an error are checked too.
    let _ = parse_csv(bytes, "key", &mut rows);
    rows.check();
});
