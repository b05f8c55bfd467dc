//! Refuses folders on network filesystems, where machines do not share memory maps.

use crate::error::{Error, Result};
use crate::options::Options;
use nuthatch_filesystem::network_filesystem;
use std::path::Path;

/// Checks that a folder is on a local filesystem, unless the options allow others. If the folder
/// does not exist, checks its parent. Succeeds if the system does not report the filesystem.
///
/// # Errors
///
/// [`Error::Options`] with the name of the network filesystem.
pub(crate) fn check(folder: &Path, options: &Options) -> Result<()> {
    if options.allow_network_filesystem {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let there = if folder.exists() { folder } else { parent.unwrap_or(Path::new(".")) };
    refuse(folder, filesystem_of(there))
}

#[cfg(not(test))]
fn filesystem_of(folder: &Path) -> Option<&'static str> {
    network_filesystem(folder).ok().flatten()
}

#[cfg(test)]
fn filesystem_of(folder: &Path) -> Option<&'static str> {
    PRETENDED.get().or_else(|| network_filesystem(folder).ok().flatten())
}

#[cfg(test)]
thread_local! {
    static PRETENDED: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// Makes this thread find every folder on a network filesystem, until it is dropped.
#[cfg(test)]
pub(crate) struct Pretended(());

#[cfg(test)]
impl Pretended {
    pub(crate) fn new(name: &'static str) -> Self {
        PRETENDED.set(Some(name));
        Self(())
    }
}

#[cfg(test)]
impl Drop for Pretended {
    fn drop(&mut self) {
        PRETENDED.set(None);
    }
}

fn refuse(folder: &Path, found: Option<&'static str>) -> Result<()> {
    match found {
        // If the filesystem is unknown, the store opens or fails for another reason.
        None => Ok(()),
        Some(name) => Err(Error::Options {
            option: "allow_network_filesystem",
            expected:
                "a folder on a local filesystem, since machines do not share the memory maps \
                       of a store; allow it if processes of one machine alone use the store"
                    .to_owned(),
            found: format!("{} on {name}", folder.display()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_names::DATA;
    use crate::file_names::LOCKS;
    use crate::store::Store;

    #[test]
    fn a_folder_on_a_network_filesystem_is_refused_with_the_way_to_allow_it() {
        let folder = Path::new("shared");
        let error = refuse(folder, Some("nfs")).expect_err("a network filesystem");
        assert_eq!(error.code(), "options");
        let text = error.to_string();
        assert!(
            text.starts_with("allow_network_filesystem: expected a folder on a local"),
            "{text}"
        );
        assert!(text.ends_with("found shared on nfs"), "{text}");
        refuse(folder, None).expect("a local filesystem");
    }

    #[test]
    fn a_local_folder_needs_no_option() {
        let folder = tempfile::tempdir().expect("a folder");
        check(folder.path(), &Options::new()).expect("a local filesystem");
        check(folder.path(), &Options::new().allow_network_filesystem(true)).expect("allowed");
    }

    #[track_caller]
    fn is_refused(folder: &Path, options: &Options) {
        let error = Store::open(folder, options).expect_err("a network filesystem");
        assert_eq!(error.code(), "options", "{error}");
        let text = error.to_string();
        assert!(text.starts_with("allow_network_filesystem: expected a folder"), "{text}");
        assert!(text.ends_with("on nfs"), "{text}");
    }

    #[test]
    fn a_folder_that_is_refused_is_not_created() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("new");
        let nfs = Pretended::new("nfs");
        is_refused(&folder, &Options::new());
        assert!(!folder.exists(), "it was created before the check");
        drop(nfs);
        close(Store::open(&folder, &Options::new()).expect("a local filesystem"));
    }

    fn close(store: Store) {
        assert!(store.close_within(std::time::Duration::from_mins(10)), "it is closed");
    }

    #[test]
    fn a_store_on_a_network_filesystem_is_opened_only_if_that_is_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let _nfs = Pretended::new("nfs");
        is_refused(folder, &Options::new());
        is_refused(folder, &Options::new().read_only(true));
        for file in [DATA, LOCKS] {
            assert!(!folder.join(file).exists(), "{file} was created before the check");
        }
        let allowed = Options::new().allow_network_filesystem(true);
        close(Store::open(folder, &allowed).expect("it is allowed"));
        // The store exists now.
        is_refused(folder, &Options::new());
        is_refused(folder, &Options::new().read_only(true));
        close(Store::open(folder, &allowed.read_only(true)).expect("it is allowed"));
    }
}
