//! Connections to real servers, on which anything is done in any order.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    nuthatch_fuzz::connections::run(script);
});
