//! What a node of a cluster keeps in `data-dir`: its identifier, and its last leases in etcd.

use crate::files::AtomicFile;
use nuthatch_cluster::node_id::NodeId;
use std::fs::read_to_string;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tracing::warn;

/// The file with the identifier of the node.
const ID_FILE: &str = "node-id";

/// The file with the last leases of processes with this folder, the newest first, each with the
/// boot of its machine. The folder is locked, so a process of the same boot has ended, and this one
/// takes its place in the cluster at once. A process on another machine may still run, unless it
/// has stopped in order: then the line has [`STOPPED`] in the place of the boot.
const LEASE_FILE: &str = "node-lease";
const STOPPED: &str = "stopped";
/// A process that ends before its key is bound to its lease leaves the key to an earlier one.
const MAX_LEASES: usize = 4;
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

    /// Returns the last leases of processes that have ended. Without them, the node waits until the
    /// lease of its key has ended.
    pub(super) fn leases(&self) -> Vec<i64> {
        let boot = read_to_string(BOOT_ID).unwrap_or_default();
        let boot = boot.trim_end();
        let lease = |line: &str| {
            let (lease, place) = line.split_once(' ')?;
            let has_ended = place == STOPPED || !boot.is_empty() && place == boot;
            lease.parse().ok().filter(|_| has_ended)
        };
        self.lines().iter().filter_map(|line| lease(line)).collect()
    }

    /// Stores the lease that this process leaves to the next one, on any machine.
    pub(super) fn keep_stopped_lease(&self, lease: i64) {
        self.add(lease, Ok(STOPPED.to_owned()));
    }

    /// Stores a lease of this process. Call it before the key of the node is bound to the lease.
    pub(super) fn keep_lease(&self, lease: i64) {
        self.add(lease, read_to_string(BOOT_ID));
    }

    fn lines(&self) -> Vec<String> {
        let path = self.folder.as_ref().map(|folder| folder.join(LEASE_FILE));
        let text = path.and_then(|path| read_to_string(path).ok()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Adds a lease. The key of the node may still be bound to an earlier one.
    fn add(&self, lease: i64, place: io::Result<String>) {
        let Some(folder) = &self.folder else { return };
        let path = folder.join(LEASE_FILE);
        let stored = place.and_then(|place| {
            let mut lines = vec![format!("{lease} {}", place.trim_end())];
            lines.extend(self.lines().into_iter().take(MAX_LEASES - 1));
            let mut file = AtomicFile::create(path.clone())?;
            file.write_all(format!("{}\n", lines.join("\n")).as_bytes())?;
            file.publish()
        });
        if let Err(error) = stored {
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
    use std::fs;

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
    fn a_node_keeps_its_last_leases() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = NodeFiles::open(Some(folder.path())).expect("a folder");
        assert!(files.leases().is_empty());
        files.keep_lease(1 << 62);
        files.keep_stopped_lease(5);
        files.keep_lease(6);
        assert_eq!(files.leases(), [6, 5, 1 << 62]);
        (7..10).for_each(|lease| files.keep_lease(lease));
        assert_eq!(files.leases(), [9, 8, 7, 6]);
        // The process may still run there.
        let other = "7 6f1c3e2a-0000-4000-8000-000000000000\n8 stopped\n";
        fs::write(folder.path().join(LEASE_FILE), other).expect("a file");
        assert_eq!(files.leases(), [8]);
        fs::write(folder.path().join(LEASE_FILE), "12").expect("a file");
        assert!(files.leases().is_empty());
        assert!(NodeFiles::open(None).expect("no folder").leases().is_empty());
    }
}
