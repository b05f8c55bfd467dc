//! Parses arbitrary bytes in the text format of AxonCache.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::JsonRows;
use nuthatch_import::parse_dta;

fuzz_target!(|bytes: &[u8]| {
    let mut rows = JsonRows::default();
    // The rows before an error are checked too.
    let _ = parse_dta(bytes, &mut rows);
    rows.check();
});
