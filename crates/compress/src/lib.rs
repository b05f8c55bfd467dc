//! Compression of values with dictionaries that are trained from the values themselves.
//!
//! Small values, such as JSON documents of a few hundred bytes, have little repetition of their
//! own. A dictionary has what they repeat among each other, so they become several times smaller
//! than without one. This crate compresses single values, trains dictionaries from samples of live
//! values for each group of keys, and decides by samples that training has not seen which
//! dictionary is worthwhile. The codec and the trainer are those of zstd.
//!
//! ```
//! use nuthatch_compress::{Codec, Dictionaries, Encoded, Sampler, Trainer, TrainerOptions};
//! use std::sync::Arc;
//!
//! let dictionaries = Arc::new(Dictionaries::new(3, 64 << 20));
//! let sampler = Arc::new(Sampler::new(1, 32, 16 << 20, 42));
//! let mut trainer = Trainer::new(&dictionaries, &sampler, TrainerOptions::new())?;
//!
//! // On each thread of a server:
//! let mut codec = Codec::new(&dictionaries)?.sampler(&sampler);
//! let mut buffer = Vec::new();
//! let value = |n: u32| {
//!     let (name, day) = (format!("user {n}"), 1 + n % 28);
//!     format!(r#"{{"id":{n},"name":"{name}","is_active":true,"since":"2024-01-{day:02}"}}"#)
//! };
//! for n in 0..2000 {
//!     let (key, raw) = (format!("user:{n}:profile"), value(n));
//!     let encoded = codec.compress(key.as_bytes(), raw.as_bytes(), &mut buffer);
//!     if let Encoded::Compressed(bytes) = encoded {
//!         codec.release(bytes)?; // This example does not store it.
//!     }
//! }
//!
//! // On a thread in the background, once a second:
//! let evaluation = trainer.step(1_000).expect("enough samples");
//! assert_eq!(evaluation.group, b"user:*:");
//! assert!(evaluation.dictionary.is_some() && evaluation.sizes.saved() > 0.1);
//!
//! // New values use the dictionary.
//! let raw = value(2001);
//! let encoded = codec.compress(b"user:2001:profile", raw.as_bytes(), &mut buffer);
//! let Encoded::Compressed(bytes) = encoded else { panic!("expected a compressed value") };
//! let mut out = Vec::new();
//! codec.decompress(bytes, 512 << 20, &mut out)?;
//! assert_eq!(out, raw.as_bytes());
//! codec.release(bytes)?; // The value was removed.
//! # Ok::<(), nuthatch_compress::Error>(())
//! ```
//!
//! The modules import in one direction, down this list:
//!
//! | file | content |
//! |---|---|
//! | `trainer.rs` | evaluates groups and decides about their dictionaries |
//! | `codec.rs` | compresses and decompresses on one thread |
//! | `files.rs` | dictionaries as files |
//! | `sampler.rs` | samples of live values, for each group |
//! | `dictionaries.rs` | the set of dictionaries that all threads share |
//! | `folder.rs` | a folder that keeps each dictionary before values need it |
//! | `file.rs` | one file of a dictionary |
//! | `training.rs` | trains a dictionary, measures what it saves |
//! | `contexts.rs` | the calls of zstd |
//! | `dictionary.rs`, `format.rs` | one dictionary; the format of compressed values |
//! | `group.rs`, `samples.rs`, `random.rs` | groups of keys, samples, random numbers |
//! | `error.rs` | errors |

mod codec;
mod contexts;
mod dictionaries;
mod dictionary;
mod error;
mod file;
mod files;
mod folder;
mod format;
mod group;
mod random;
mod sampler;
mod samples;
mod trainer;
mod training;

pub use codec::{Codec, DEFAULT_MIN_LEN, Encoded, MAX_LEN_WITH_DICTIONARY};
pub use dictionaries::{DEFAULT_MEMORY_LIMIT, Dictionaries};
pub use dictionary::{Dictionary, DictionaryStats, MAX_DICTIONARY_BYTES, set_dictionary_id};
pub use error::{Error, Result};
pub use file::read_dictionary;
pub use folder::DictionaryFolder;
pub use format::{MAX_HEADER_LEN, ValueInfo};
pub use group::{MAX_PREFIX_LEN, group_name};
pub use sampler::Sampler;
pub use samples::Reservoir;
pub use trainer::{Decision, Evaluation, Trainer, TrainerOptions};
pub use training::{
    DEFAULT_DICTIONARY_BYTES, MIN_DICTIONARY_BYTES, Sizes, Trained, measure, train,
};
