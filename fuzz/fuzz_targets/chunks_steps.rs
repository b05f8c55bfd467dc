//! Anything done with a cache of chunks in any order: what is found is what was put.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    nuthatch_fuzz::chunks::run(folder.path(), script);
});
