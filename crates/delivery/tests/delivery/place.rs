//! A destination, a folder that follows it, and snapshots to publish.

use nuthatch_delivery::{
    Destination, Error, FollowOptions, Follower, PublishOptions, Published, Result, Swapped,
    publish,
};
use nuthatch_snapshot::{Snapshot, Value, WriterOptions};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// Returns the default options, for a publication now.
pub(crate) fn options() -> PublishOptions {
    PublishOptions::at(now())
}

/// Returns the time of the system, which objects in a folder have, too.
#[expect(clippy::disallowed_methods, reason = "files have the time of the system")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn destination(&self) -> Destination {
        Destination::open(self.path("shared").to_str().expect("UTF-8")).expect("a destination")
    }

    /// Builds a snapshot with the keys `0` to `49`. The value of key 7 is `seven`, others are
    /// those of `version`.
    pub(crate) fn build(&self, name: &str, shards: u32, seven: i64) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let options = WriterOptions::new().shards(shards);
        let mut writer = options.create(&path).expect("a writer");
        for key in 0..50 {
            let value = if key == 7 { seven } else { key };
            writer.insert(key.to_string().as_bytes(), Value::I64(value)).expect("a row");
        }
        writer.finish().expect("a snapshot");
        path
    }

    /// Builds and publishes a file.
    pub(crate) async fn publish(&self, seven: i64) -> Published {
        let file = self.build("users.nut", 0, seven);
        self.publish_file(&file, &options()).await.expect("published")
    }

    pub(crate) async fn publish_file(
        &self,
        file: &Path,
        options: &PublishOptions,
    ) -> Result<Published> {
        publish(&self.destination(), file, options, |_| {}).await
    }

    pub(crate) fn follower(&self) -> Follower {
        self.follower_with(FollowOptions::default()).expect("a follower")
    }

    pub(crate) fn follower_with(&self, options: FollowOptions) -> Result<Follower> {
        Follower::open(self.destination(), &self.path("folder"), options)
    }

    /// Returns the value of key 7 in the folder.
    pub(crate) fn seven(&self) -> Option<i64> {
        let snapshot = Snapshot::open(self.path("folder/users.nut")).ok()?;
        snapshot.verify().expect("a valid snapshot");
        snapshot.get_i64(b"7").expect("an integer")
    }

    /// Returns the names of the objects, sorted.
    pub(crate) fn objects(&self) -> Vec<String> {
        names(&self.path("shared/objects"))
    }

    /// Returns the names of the folders of generations, sorted.
    pub(crate) fn generations(&self) -> Vec<String> {
        let mut names = names(&self.path("folder/.nuthatch"));
        names.retain(|name| name.contains('-'));
        names
    }
}

/// Returns the names of the files in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

/// Checks once. Panics if that fails.
pub(crate) async fn check(follower: &mut Follower) -> Option<Swapped> {
    follower.check(|_| {}).await.expect("a check")
}

/// Checks once, which must fail. Returns the error.
pub(crate) async fn failure(follower: &mut Follower) -> Error {
    follower.check(|_| {}).await.expect_err("a failure")
}
