//! Which file a snapshot was opened from. An unpickled snapshot must read the same one.

use nuthatch_snapshot::layout;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The checksum of the header of a file or of a manifest, in hexadecimal digits. The header has the
/// checksums of all other parts, so it identifies the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity(pub(super) String);

impl Identity {
    /// Reads the identity of the file at a path. A file without a complete header has an empty one.
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let mut magic = [0; layout::MANIFEST_MAGIC.len()];
        let mut hash = [0; 8];
        if file.read_exact_at(&mut magic, 0).is_err() {
            return Ok(Self(String::new()));
        }
        let is_manifest = magic == layout::MANIFEST_MAGIC;
        let at = if is_manifest { layout::manifest::HASH } else { layout::header::HASH };
        let is_read = file.read_exact_at(&mut hash, at as u64).is_ok();
        Ok(Self(if is_read { format!("{:016x}", u64::from_le_bytes(hash)) } else { String::new() }))
    }
}
