//! Opens arbitrary bytes as a snapshot and reads all of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::read_all;
use nuthatch_snapshot::Snapshot;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(snapshot) = Snapshot::from_bytes(bytes) {
        read_all(&snapshot);
    }
});
