//! Like `open`, but corrects the checksums first, so that the damage reaches the index and the
//! data.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::{mend, read_all};
use nuthatch_snapshot::Snapshot;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    mend(&mut bytes);
    if let Ok(snapshot) = Snapshot::from_bytes(&bytes) {
        read_all(&snapshot);
    }
});
