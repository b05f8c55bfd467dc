//! Executes arbitrary operations on a chunk cache. Gets return exactly the bytes that were put.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    nuthatch_fuzz::chunks::run(folder.path(), script);
});
