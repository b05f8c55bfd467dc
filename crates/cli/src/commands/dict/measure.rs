//! Measures size and speed of compression on samples.

use nuthatch_compress::{Codec, Dictionaries, Encoded, Error};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The minimum time of all rounds of a measurement.
const MIN_TIME: Duration = Duration::from_millis(200);
/// The minimum number of rounds. The result is the fastest one.
const MIN_ROUNDS: usize = 3;
/// The limit for the memory of a dictionary in bytes: that of the longest one at the highest level.
const MEMORY_LIMIT: usize = 1 << 30;

/// The result of a measurement.
pub(super) struct Measured {
    /// The length of all encoded values in bytes, headers included.
    pub(super) bytes: u64,
    /// The number of values that are stored raw.
    pub(super) raw_values: u64,
    /// The time to compress a value, in nanoseconds.
    pub(super) compress_ns: f64,
    /// The time to decompress a value, in nanoseconds. A value that is stored raw is copied.
    pub(super) decompress_ns: f64,
}

/// The form in which a sample is stored.
enum Stored {
    Raw(usize),
    Compressed(Vec<u8>),
}

/// Compresses and decompresses samples at a level, with a dictionary or without one.
pub(super) fn measure(
    samples: &[Box<[u8]>],
    level: i32,
    dictionary: Option<&[u8]>,
) -> Result<Measured, Error> {
    let dictionaries = Arc::new(Dictionaries::new(level, MEMORY_LIMIT));
    if let Some(dictionary) = dictionary {
        dictionaries.use_for_all(dictionary)?;
    }
    let mut codec = Codec::new(&dictionaries)?.min_len(0);
    let mut buffer = Vec::new();
    let mut stored = Vec::with_capacity(samples.len());
    for (at, sample) in samples.iter().enumerate() {
        stored.push(match codec.compress(b"", sample, &mut buffer) {
            Encoded::Raw => Stored::Raw(at),
            Encoded::Compressed(encoded) => Stored::Compressed(encoded.to_vec()),
        });
    }
    let compress_ns = fastest(samples.len(), || {
        for sample in samples {
            let _ = std::hint::black_box(codec.compress(b"", sample, &mut buffer));
        }
        Ok(())
    })?;
    let decompress_ns = fastest(samples.len(), || {
        for stored in &stored {
            buffer.clear();
            match stored {
                Stored::Raw(at) => buffer.extend_from_slice(&samples[*at]),
                Stored::Compressed(encoded) => {
                    codec.decompress(encoded, usize::MAX, &mut buffer)?;
                }
            }
            std::hint::black_box(&buffer);
        }
        Ok(())
    })?;
    let lengths = stored.iter().map(|stored| match stored {
        Stored::Raw(at) => samples[*at].len(),
        Stored::Compressed(encoded) => encoded.len(),
    });
    let raw_values = stored.iter().filter(|stored| matches!(stored, Stored::Raw(_))).count();
    Ok(Measured {
        bytes: lengths.map(|len| len as u64).sum(),
        raw_values: raw_values as u64,
        compress_ns,
        decompress_ns,
    })
}

/// Runs rounds over all values, and returns the time for a value in the fastest one.
fn fastest(values: usize, mut round: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let (begin, mut fastest, mut rounds) = (Instant::now(), Duration::MAX, 0);
    while rounds < MIN_ROUNDS || begin.elapsed() < MIN_TIME {
        let start = Instant::now();
        round()?;
        fastest = fastest.min(start.elapsed());
        rounds += 1;
    }
    Ok(fastest.as_nanos() as f64 / values.max(1) as f64)
}
