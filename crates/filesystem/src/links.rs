//! Counts the links of an open file.

use rustix::fs::{AtFlags, StatxFlags, fstat, statx};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// Returns the number of links to an open file: 0 if the file was removed, or replaced by another
/// one.
///
/// Does not query the times of the file. Since Linux 6.13, a query of the times makes the next
/// write store its exact time in the inode, and syncing the inode lowers the rate of durable writes
/// by a fifth.
///
/// # Errors
///
/// Returns the error of statx(2), for example `ESTALE` if a network filesystem no longer has the
/// file.
pub fn link_count(file: &File) -> io::Result<u64> {
    match statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK) {
        Ok(found) => Ok(found.stx_nlink.into()),
        // Linux before 4.11, or a sandbox that does not permit the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            #[allow(clippy::useless_conversion, reason = "the type depends on the architecture")]
            let links = fstat(file)?.st_nlink.into();
            Ok(links)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_counted_until_the_last_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let file = File::create(&first).expect("a file");
        assert_eq!(link_count(&file).expect("a count"), 1);
        std::fs::hard_link(&first, &second).expect("a link");
        assert_eq!(link_count(&file).expect("a count"), 2);
        for path in [first, second] {
            std::fs::remove_file(path).expect("removed");
        }
        assert_eq!(link_count(&file).expect("a count"), 0);
    }
}
