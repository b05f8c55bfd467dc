//! Detects network filesystems, counts the links of open files, and advises about the limit of open
//! files.
//!
//! Processes share the folder of an engine by file locks and shared memory maps, which work on a
//! local filesystem. On a network filesystem, two machines may see different bytes of one map, and
//! the locks of one machine may not exclude the other. So an engine refuses such a folder or warns
//! about it.

mod file_limit;
mod links;

pub use file_limit::file_limit_advice;
pub use links::link_count;

use rustix::fs::statfs;
use std::io;
use std::path::Path;

/// The network filesystems: `f_type` of statfs(2), and the name that mount(8) shows.
const NETWORK: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb3"),
    (0x517B, "smbfs"),
    (0x00C3_6400, "ceph"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x0BD0_0BD0, "lustre"),
    (0x0116_1970, "gfs2"),
    (0x7461_636F, "ocfs2"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0x2003_0528, "orangefs"),
];

/// Returns the name of the network filesystem that holds `path`, or `None` if it is local.
///
/// FUSE filesystems count as local, because statfs(2) does not report what is behind them. Any
/// unknown filesystem counts as local, too.
///
/// # Errors
///
/// Returns the error of statfs(2), for example if `path` does not exist.
pub fn network_filesystem(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = statfs(path)?.f_type;
    Ok(name_of(kind.cast_unsigned() as u32))
}

fn name_of(kind: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_local() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(network_filesystem(folder.path()).expect("statfs"), None);
    }

    #[test]
    fn network_filesystems_have_names() {
        assert_eq!(name_of(0x6969), Some("nfs"));
        assert_eq!(name_of(0xFF53_4D42), Some("cifs"));
        assert_eq!(name_of(0xEF53), None, "ext4 is local");
    }

    #[test]
    fn an_absent_path_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = network_filesystem(&folder.path().join("absent")).expect_err("no such path");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
