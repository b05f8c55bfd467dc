//! Opens arbitrary bytes as the manifest of a set, beside the shards of a good one, and reads all
//! of it. The checksums and lengths of the manifest are corrected first if the first byte is odd.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::{mend_manifest, read_all};
use nuthatch_snapshot::{Snapshot, Value, WriterOptions};
use std::sync::LazyLock;
use tempfile::TempDir;

/// A folder with the shards of the set that the seeds are manifests of.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("set.nut");
    let mut writer = WriterOptions::new().shards(3).create(&path).expect("a writer");
    for row in 0..20 {
        writer.insert(format!("k{row}").as_bytes(), Value::I64(row)).expect("a row");
    }
    writer.finish().expect("a set");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if first % 2 == 1 {
        mend_manifest(&mut bytes);
    }
    let path = FOLDER.path().join("set.nut");
    std::fs::write(&path, &bytes).expect("a manifest");
    if let Ok(snapshot) = Snapshot::open(&path) {
        read_all(&snapshot);
    }
});
