//! What a node of a cluster keeps in `data-dir`: its identifier, and its last lease in etcd.

use crate::files::AtomicFile;
use nuthatch_cluster::node_id::NodeId;
use std::fs::{self, read_to_string};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tracing::warn;

/// The file with the identifier of the node.
const ID_FILE: &str = "node-id";

/// The file with the lease of the last process with this folder, and the boot of its machine. The
/// folder is locked, so a process of the same boot has ended, and this one takes its place in the
/// cluster at once. A process on another machine may still run, unless it has stopped in order:
/// then the file has [`STOPPED`] in the place of the boot.
const LEASE_FILE: &str = "node-lease";
const STOPPED: &str = "stopped\n";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The files of a node.
pub(super) struct NodeFiles {
    pub(super) id: NodeId,
    /// The folder; `None` for a node that keeps nothing.
    folder: Option<PathBuf>,
}

impl NodeFiles {
    /// Reads the identifier in a folder, and creates it if there is none.
    pub(super) fn open(folder: Option<&Path>) -> Result<Self, String> {
        let id = folder.map_or_else(random_id, kept_id)?;
        Ok(Self { id, folder: folder.map(Path::to_owned) })
    }

    /// Returns the lease of the last process. A file that cannot be read is as none: the node then
    /// waits until that lease has ended.
    pub(super) fn lease(&self) -> Option<i64> {
        let text = read_to_string(self.folder.as_ref()?.join(LEASE_FILE)).ok()?;
        let (lease, boot) = text.split_once(' ')?;
        if boot != STOPPED && (boot.is_empty() || boot != read_to_string(BOOT_ID).ok()?) {
            return None;
        }
        lease.parse().ok()
    }

    /// Stores the lease that this process leaves to the next one, on any machine.
    pub(super) fn keep_stopped_lease(&self, lease: i64) {
        self.store_lease(|path| fs::write(path, format!("{lease} {STOPPED}")));
    }

    /// Stores the lease of this process.
    pub(super) fn keep_lease(&self, lease: Option<i64>) {
        let Some(lease) = lease else { return };
        self.store_lease(|path| {
            read_to_string(BOOT_ID).and_then(|boot| fs::write(path, format!("{lease} {boot}")))
        });
    }

    fn store_lease(&self, store: impl FnOnce(&Path) -> io::Result<()>) {
        let Some(folder) = &self.folder else { return };
        let path = folder.join(LEASE_FILE);
        if let Err(error) = store(&path) {
            let path = path.display();
            warn!(
                target: "nuthatch::cluster",
                %path,
                %error,
                "the lease cannot be stored, so a restarted node waits until it has ended"
            );
        }
    }
}

fn random_id() -> Result<NodeId, String> {
    NodeId::random().map_err(|error| format!("no random numbers for an identifier: {error}"))
}

/// Returns the identifier in a folder, and creates it if there is none.
fn kept_id(folder: &Path) -> Result<NodeId, String> {
    let path = folder.join(ID_FILE);
    let failure = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    match read_to_string(&path) {
        Ok(text) => text.trim_end().parse().map_err(|error| failure(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let id = random_id()?;
            let created = AtomicFile::create(path.clone()).and_then(|mut file| {
                writeln!(file, "{id}")?;
                file.publish()
            });
            created.map(|()| id).map_err(|error| failure(&error))
        }
        Err(error) => Err(failure(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_identifier() {
        let folder = tempfile::tempdir().expect("a folder");
        let id = kept_id(folder.path()).expect("a new identifier");
        assert_eq!(kept_id(folder.path()), Ok(id));
        fs::write(folder.path().join(ID_FILE), "12\n").expect("a file");
        let error = kept_id(folder.path()).expect_err("another content");
        assert!(error.contains("node-id: expected 40 hexadecimal digits"), "{error}");
    }

    #[test]
    fn a_node_keeps_its_lease() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = NodeFiles::open(Some(folder.path())).expect("a folder");
        assert_eq!(files.lease(), None);
        files.keep_lease(Some(1 << 62));
        assert_eq!(files.lease(), Some(1 << 62));
        // The process may still run there.
        let other = "7 6f1c3e2a-0000-4000-8000-000000000000\n";
        fs::write(folder.path().join(LEASE_FILE), other).expect("a file");
        assert_eq!(files.lease(), None);
        files.keep_stopped_lease(5);
        assert_eq!(files.lease(), Some(5));
        // A write that was interrupted.
        fs::write(folder.path().join(LEASE_FILE), "12").expect("a file");
        assert_eq!(files.lease(), None);
        assert_eq!(NodeFiles::open(None).expect("no folder").lease(), None);
    }
}
