//! What is known of each segment. Those of large items are many, and most are never used: what is
//! known of them takes memory only from the first use on.

use crate::segments::Meta;
use std::ops::Index;
use std::sync::OnceLock;

/// Granules for large items that are made known at a time.
const PIECE: usize = 1024;

pub(crate) struct Metas {
    ordinary: Box<[Meta]>,
    /// Of granules for large items, behind those.
    large: Box<[OnceLock<Box<[Meta]>>]>,
    granules: u32,
}

impl Metas {
    /// Of so many ordinary segments and granules.
    pub(crate) fn new(ordinary: u32, granules: u32) -> Self {
        let large = (0..granules.div_ceil(PIECE as u32)).map(|_| OnceLock::new()).collect();
        let ordinary = (0..ordinary).map(|_| Meta::default()).collect();
        Self { ordinary, large, granules }
    }

    /// How many granules there are for large items.
    pub(crate) fn granules(&self) -> u32 {
        self.granules
    }

    /// What is known of a segment of this number, if there can be one.
    pub(crate) fn get(&self, number: u32) -> Option<&Meta> {
        let number = number as usize;
        (number < self.ordinary.len() + self.granules as usize).then(|| &self[number])
    }

    /// Bytes.
    pub(crate) fn memory(&self) -> u64 {
        let made: usize = self.large.iter().filter_map(OnceLock::get).map(|made| made.len()).sum();
        (size_of_val(&*self.large) + (self.ordinary.len() + made) * size_of::<Meta>()) as u64
    }

    fn of_large(&self, granule: usize) -> &Meta {
        let make = || (0..PIECE).map(|_| Meta::default()).collect();
        &self.large[granule / PIECE].get_or_init(make)[granule % PIECE]
    }
}

impl Index<usize> for Metas {
    type Output = Meta;

    #[inline]
    fn index(&self, number: usize) -> &Meta {
        match self.ordinary.get(number) {
            Some(meta) => meta,
            None => self.of_large(number - self.ordinary.len()),
        }
    }
}
