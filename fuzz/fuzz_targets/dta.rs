//! Any bytes as AxonCache's text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::JsonRows;
use nuthatch_import::parse_dta;

fuzz_target!(|bytes: &[u8]| {
    let mut rows = JsonRows::default();
    // Rows before an error are rows.
    let _ = parse_dta(bytes, &mut rows);
    rows.check();
});
