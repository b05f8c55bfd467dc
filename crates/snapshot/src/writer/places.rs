//! Where shared values lie, by their numbers: in memory, or in a file if there are too many.

use super::emit::Source;
use super::row::RowRef;
use super::spill::SpillFile;
use crate::error::Result;
use crate::value::ValueType;
use std::path::Path;

/// Where a value lies that other entries refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// The offset in the data section in the lower 48 bits, then the type code, then flags. Zero
    /// for a value without a place.
    head: u64,
    /// The row that stores the value if all rows are in memory, otherwise the stored length.
    detail: u64,
}

const OFFSET_BITS: u32 = 48;
const COMPRESSED: u64 = 1 << 62;
const IS_SET: u64 = 1 << 63;

/// Length of a place in a file: two words.
const PLACE_LEN: usize = 16;

impl Place {
    /// Returns the place of a value in a partition whose data begins at `base`.
    pub(crate) fn of(source: &Source, base: u64, rows_in_memory: bool) -> Self {
        let code = u64::from(source.value_type.code()) << OFFSET_BITS;
        let flags = IS_SET | u64::from(source.compressed) * COMPRESSED;
        let detail = if rows_in_memory { source.row.to_place() } else { source.stored_len };
        Self { head: flags | code | (base + source.offset), detail }
    }

    /// Returns the offset of the value in the data section.
    pub(crate) fn offset(self) -> u64 {
        self.head & ((1 << OFFSET_BITS) - 1)
    }

    /// Returns the row that stores the value. Only for builds with all rows in memory.
    pub(crate) fn row(self) -> RowRef {
        RowRef::from_place(self.detail)
    }

    /// Returns whether the value is stored with this type, compression and length. Only for builds
    /// with rows in files.
    pub(crate) fn is_stored_as(self, value_type: ValueType, compressed: bool, len: u64) -> bool {
        let code = self.head >> OFFSET_BITS & 0xff;
        let is_compressed = self.head & COMPRESSED != 0;
        (code, is_compressed, self.detail) == (u64::from(value_type.code()), compressed, len)
    }

    fn to_bytes(self) -> [u8; PLACE_LEN] {
        let mut bytes = [0; PLACE_LEN];
        bytes[..8].copy_from_slice(&self.head.to_le_bytes());
        bytes[8..].copy_from_slice(&self.detail.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; PLACE_LEN]) -> Self {
        let [head, detail] =
            [0, 8].map(|at| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
        Self { head, detail }
    }
}

/// The places of all shared values that have one yet.
pub(crate) enum Places {
    Memory(Vec<Place>),
    File(SpillFile),
}

impl Places {
    /// Makes room for so many values: in memory if that takes no more than `budget` bytes.
    pub(crate) fn new(values: u64, budget: usize, directory: &Path) -> Result<Self> {
        let len = usize::try_from(values).unwrap_or(usize::MAX);
        if len <= budget / size_of::<Place>() {
            return Ok(Self::Memory(vec![Place::default(); len]));
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
            Self::Memory(places) => places[value as usize] = place,
            Self::File(file) => file.write_at(&place.to_bytes(), value * PLACE_LEN as u64)?,
        }
        Ok(())
    }

    /// Returns the place of a value; `None` if it has none yet.
    pub(crate) fn get(&self, value: u64) -> Result<Option<Place>> {
        let place = match self {
            Self::Memory(places) => places[value as usize],
            Self::File(file) => {
                let mut bytes = [0; PLACE_LEN];
                file.read_at(&mut bytes, value * PLACE_LEN as u64)?;
                Place::from_bytes(bytes)
            }
        };
        Ok((place.head != 0).then_some(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_file_read_as_they_were_written() -> Result<()> {
        let mut places = Places::new(100, 0, &std::env::temp_dir())?;
        assert!(matches!(places, Places::File(_)));
        let source = Source {
            number: 99,
            row: RowRef::default(),
            value_type: ValueType::F32List,
            compressed: true,
            offset: 5,
            stored_len: 1 << 32,
        };
        places.set(99, Place::of(&source, 1 << 47, false))?;
        assert!(places.get(98)?.is_none());
        let found = places.get(99)?.expect("a place");
        assert_eq!(found.offset(), (1 << 47) + 5);
        assert!(found.is_stored_as(ValueType::F32List, true, 1 << 32));
        assert!(!found.is_stored_as(ValueType::F32List, false, 1 << 32));
        assert!(!found.is_stored_as(ValueType::F32List, true, 1));
        Ok(())
    }
}
