//! Any bytes as AxonCache's text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_import::parse_dta;
use nuthatch_fuzz::JsonRows;

fuzz_target!(|bytes: &[u8]| {
    let mut rows = JsonRows::default();
    // Rows before an error are rows.
    let _ = parse_dta(bytes, &mut rows);
    rows.check();
});
