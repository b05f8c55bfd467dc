//! The loops that are timed, and whose instructions `bench/instructions` counts. Each returns the
//! number of keys found, which proves that the system executed the lookups.

use crate::Result;
use crate::system::{BATCH, Reader, Tally};
use std::hint::black_box;

/// Looks up texts one by one.
#[inline(never)]
pub fn texts(reader: &mut impl Reader, keys: &[&[u8]]) -> Result<usize> {
    let mut tally = Tally::default();
    for key in keys {
        tally.add(reader.text(key)?);
    }
    Ok(black_box(tally).found)
}

/// Looks up texts in batches of [`BATCH`].
#[inline(never)]
pub fn batches(reader: &mut impl Reader, keys: &[&[u8]]) -> Result<usize> {
    let mut all = Tally::default();
    for keys in keys.chunks(BATCH) {
        let tally = reader.texts(keys)?;
        all.found += tally.found;
        all.sum += tally.sum;
    }
    Ok(black_box(all).found)
}

/// Looks up vectors one by one.
#[inline(never)]
pub fn vectors(reader: &mut impl Reader, keys: &[&[u8]]) -> Result<usize> {
    let (mut found, mut sum) = (0, 0.0);
    for key in keys {
        if let Some(first) = reader.vector(key)? {
            found += 1;
            sum += first;
        }
    }
    black_box(sum);
    Ok(found)
}
