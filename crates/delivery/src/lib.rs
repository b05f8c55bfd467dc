//! Brings snapshots from one place to many machines.
//!
//! [`publish`] uploads a snapshot to a [`Destination`], a folder or a path in an object store, as a
//! new generation: its files under names that begin with their hash, then a small manifest, which a
//! conditional write replaces. [`roll_back`] makes an earlier generation the current one again. A
//! [`Follower`] keeps a folder at the current generation: it fetches the files, verifies them, and
//! replaces a symbolic link, so that watches of that link switch their readers.
//!
//! ```
//! use nuthatch_delivery::{Destination, FollowOptions, Follower, PublishOptions, publish};
//! # use nuthatch_snapshot::{Snapshot, Value, Writer};
//! # let directory = tempfile::tempdir()?;
//! # let (path, shared) = (directory.path().join("users.nut"), directory.path().join("shared"));
//! # let shared = shared.to_str().expect("UTF-8");
//! # let folder = directory.path().join("folder");
//! # let mut writer = Writer::create(&path)?;
//! # writer.insert(b"user:1.name", Value::String("Ada"))?;
//! # writer.finish()?;
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! # let now = std::time::SystemTime::now();
//! let destination = Destination::open(shared)?;
//! let published = publish(&destination, &path, &PublishOptions::at(now), |_| {}).await?;
//! assert_eq!(published.generation, 1);
//!
//! let mut follower = Follower::open(destination, &folder, FollowOptions::default())?;
//! let swapped = follower.check(|_| {}).await?.expect("a generation");
//! let snapshot = Snapshot::open(&swapped.path)?;
//! assert_eq!(snapshot.get_string(b"user:1.name")?.as_deref(), Some("Ada"));
//! # Ok::<(), nuthatch_delivery::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/formats/delivery.md` specifies the manifest and the folders. Modules import in one
//! direction: `publish`, `follow` and `staging`, `destination`, `envelope`, `delta`, `signature`
//! and `manifest`, `error`.

mod delta;
mod destination;
mod envelope;
mod error;
mod follow;
mod manifest;
mod publish;
mod signature;
mod staging;

pub use destination::Destination;
pub use error::{Error, Result};
pub use follow::{
    Bandwidth, DeltaOptions, Fetched, FollowOptions, Follower, Group, GroupChecked, Swapped,
    delay_before_check,
};
pub use manifest::{DataFile, Delta, Generation, Manifest, timestamp};
pub use publish::{
    PublishOptions, Published, Retention, ShardUploadOptions, ShardUploads, Uploaded,
    UploadedShard, check_serial, generations, has_contents, publish, roll_back,
};
pub use signature::{SigningKey, TrustedKey};
pub use staging::{StagedFile, Staging, download};
