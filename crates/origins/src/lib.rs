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
//! An object is opened once: its origin is asked for its length and its validator (an `ETag`, a
//! version, a time), and from then on every byte is of that version or an error
//! ([`Error::Changed`]). [`ChunkedObject`] reads at offsets, as a stream of bytes, and with tokio's
//! traits; any executor may poll it, since requests and files are served by threads of the cache.
//! [`BlockingObject`] is the same for threads. Ranges never include their end.
//!
//! Whoever fetches says so to others, in this process and in others that use the folder: each gap
//! is fetched once, and given to all who wait. A cache that fails is a miss, never an error: bytes
//! that cannot be kept are delivered.
//!
//! Bytes that nobody can tell the version of (an origin without any validator) are passed on and
//! not kept. Why things are as they are is in `docs/decisions/0019-read-through.md`.

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
pub use prefix::Prefix;
pub use settings::Settings;
