//! Any bytes, opened as a snapshot and read from end to end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::read_all;
use nuthatch_snapshot::Snapshot;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(snapshot) = Snapshot::from_bytes(bytes) {
        read_all(&snapshot);
    }
});
