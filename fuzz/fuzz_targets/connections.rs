//! Executes arbitrary operations on connections to real servers.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    nuthatch_fuzz::connections::run(script);
});
