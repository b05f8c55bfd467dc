//! Remote objects read through the chunk cache: what was read once comes from the disk of this
//! machine, whichever process reads it.
//!
//! ```no_run
//! use nuthatch_origins::{ObjectCache, Settings};
//! use nuthatch_chunks::Options;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new().limit(10 << 30);
//! let cache = ObjectCache::open("/var/cache/data", &options, Settings::new())?;
//! let object = cache.object("https://host/data.parquet").await?;
//! let mut footer = vec![0; 8];
//! object.read_at(object.len() - 8, &mut footer).await?;
//! println!("{:?}", object.counts());
//! # Ok(())
//! # }
//! ```
//!
//! When an object is opened, its origin reports its length and its validator (an `ETag`, a version
//! or a time). All bytes that are read are of this version; if the object changes, reading fails
//! with [`Error::Changed`]. [`ChunkedObject`] reads at offsets, as a stream of bytes, and with the
//! traits of tokio. Any executor may poll it: requests and files are handled by threads of the
//! cache. [`BlockingObject`] is the same for threads. Ranges do not include their end.
//!
//! Readers of the same bytes, in all processes that use the folder, share one fetch. A failure of
//! the cache is a miss, not an error: bytes that cannot be stored are delivered.
//!
//! Objects without a validator are delivered and not stored. `docs/decisions/0019-read-through.md`
//! has the reasons.
//!
//! Modules import in one direction: `cache`, `opening`, `object`, `reading`, `engine`, `origin`,
//! `retry`, then the files that several of these use.

mod access;
mod address;
mod cache;
mod clock;
mod counts;
mod engine;
mod error;
mod lock;
mod log_limit;
mod netrc;
mod not_kept;
mod object;
mod opening;
mod origin;
mod prefix;
mod reading;
mod retry;
mod settings;
pub mod status;

pub use access::Access;
pub use cache::shared::default_folder;
pub use cache::{ObjectCache, plain_address};
pub use counts::Counts;
pub use error::{Error, Result};
pub use log_limit::LogLimit;
pub use not_kept::NotKept;
pub use object::ChunkedObject;
pub use object::blocking::BlockingObject;
pub use object::coverage::Coverage;
pub use object::stream::ByteStream;
pub use origin::{StoreClient, store_client, store_failure};
pub use prefix::Prefix;
pub use settings::Settings;
