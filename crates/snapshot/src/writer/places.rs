//! Where shared values lie, by their numbers: in memory, or in a file if there are too many.

use super::emit::Source;
use super::row::RowRef;
use super::spill::SpillFile;
use crate::error::Result;
use crate::value::ValueType;
use std::path::Path;

/// Where a value lies that other entries refer to.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) partition: u64,
    pub(crate) row: RowRef,
    pub(crate) value_type: ValueType,
    pub(crate) compressed: bool,
    pub(crate) offset: u64,
    pub(crate) stored_len: u64,
}

/// Length of a place in a file: six words.
const PLACE_LEN: usize = 48;

/// Flag beside the type code of a place in a file.
const COMPRESSED: u64 = 1 << 8;

impl Place {
    /// Returns the place of a value in a partition whose data begins at `base`.
    pub(crate) fn of(source: &Source, partition: u64, base: u64) -> Self {
        let Source { row, value_type, compressed, offset, stored_len, .. } = *source;
        Self { partition, row, value_type, compressed, offset: base + offset, stored_len }
    }

    fn to_bytes(self) -> [u8; PLACE_LEN] {
        let kind = u64::from(self.value_type.code()) | u64::from(self.compressed) * COMPRESSED;
        let [hash, at] = self.row.to_words();
        let words = [kind, self.partition, hash, at, self.offset, self.stored_len];
        let mut bytes = [0; PLACE_LEN];
        for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        bytes
    }

    fn from_bytes(bytes: [u8; PLACE_LEN]) -> Option<Self> {
        let words = bytes.as_chunks::<8>().0;
        let [kind, partition, hash, at, offset, stored_len] =
            std::array::from_fn(|word| words.get(word).map_or(0, |word| u64::from_le_bytes(*word)));
        Some(Self {
            partition,
            row: RowRef::from_words([hash, at]),
            value_type: ValueType::from_code(kind as u8)?,
            compressed: kind & COMPRESSED != 0,
            offset,
            stored_len,
        })
    }
}

/// The places of all shared values that have one yet.
pub(crate) enum Places {
    Memory(Vec<Option<Place>>),
    File(SpillFile),
}

impl Places {
    /// Makes room for so many values: in memory if that takes no more than `budget` bytes.
    pub(crate) fn new(values: u64, budget: usize, directory: &Path) -> Result<Self> {
        let len = usize::try_from(values).unwrap_or(usize::MAX);
        if len <= budget / size_of::<Option<Place>>() {
            return Ok(Self::Memory(vec![None; len]));
        }
        let file = SpillFile::create(directory)?;
        if let Some(last) = values.checked_sub(1) {
            // Values without a place read as zeros.
            file.write_at(&[0; PLACE_LEN], last * PLACE_LEN as u64)?;
        }
        Ok(Self::File(file))
    }

    pub(crate) fn set(&mut self, value: u64, place: Place) -> Result<()> {
        match self {
            Self::Memory(places) => places[value as usize] = Some(place),
            Self::File(file) => file.write_at(&place.to_bytes(), value * PLACE_LEN as u64)?,
        }
        Ok(())
    }

    /// Returns the place of a value; `None` if it has none yet.
    pub(crate) fn get(&self, value: u64) -> Result<Option<Place>> {
        match self {
            Self::Memory(places) => Ok(places[value as usize]),
            Self::File(file) => {
                let mut bytes = [0; PLACE_LEN];
                file.read_at(&mut bytes, value * PLACE_LEN as u64)?;
                Ok(Place::from_bytes(bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_file_read_as_they_were_written() -> Result<()> {
        let mut places = Places::new(100, 0, &std::env::temp_dir())?;
        assert!(matches!(places, Places::File(_)));
        let place = Place {
            partition: 7,
            row: RowRef::from_words([u64::MAX, 1 << 40 | 1]),
            value_type: ValueType::F32List,
            compressed: true,
            offset: 1 << 47,
            stored_len: 1 << 32,
        };
        places.set(99, place)?;
        assert!(places.get(98)?.is_none());
        let found = places.get(99)?.expect("a place");
        assert_eq!(found.to_bytes(), place.to_bytes());
        assert_eq!((found.row, found.partition), (place.row, place.partition));
        Ok(())
    }
}
