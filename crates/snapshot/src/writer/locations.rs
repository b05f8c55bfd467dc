//! Locations of shared values, by their numbers: in memory, or in a file if there are too many.

use super::emit::Source;
use super::row::RowRef;
use super::spill::SpillFile;
use crate::error::Result;
use crate::values::ValueType;
use std::path::Path;

/// The location of a shared value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueLocation {
    /// The offset in the data section in the lower 48 bits, then the type code, then flags. Zero
    /// for a value without a location.
    head: u64,
    /// The location of the row that stores the value if all rows are in memory, otherwise the
    /// length of the stored value.
    detail: u64,
}

const OFFSET_BITS: u32 = 48;
const COMPRESSED: u64 = 1 << 62;
const IS_SET: u64 = 1 << 63;

/// Length of a location in a file: two words.
const LOCATION_LEN: usize = 16;

impl ValueLocation {
    /// Returns the location of a value in a partition whose data begins at `base`.
    pub(crate) fn of(source: &Source, base: u64, rows_in_memory: bool) -> Self {
        let code = u64::from(source.value_type.code()) << OFFSET_BITS;
        let flags = IS_SET | u64::from(source.compressed) * COMPRESSED;
        let detail = if rows_in_memory { source.row.location() } else { source.stored_len };
        Self { head: flags | code | (base + source.offset), detail }
    }

    /// Returns the offset of the value in the data section.
    pub(crate) fn offset(self) -> u64 {
        self.head & ((1 << OFFSET_BITS) - 1)
    }

    /// Returns the row that stores the value. Valid only if all rows are in memory.
    pub(crate) fn row(self) -> RowRef {
        RowRef::from_location(self.detail)
    }

    /// Returns whether the value is stored with this type, compression and length. Valid only if
    /// rows were spilled.
    pub(crate) fn is_stored_as(self, value_type: ValueType, compressed: bool, len: u64) -> bool {
        let code = self.head >> OFFSET_BITS & 0xff;
        let is_compressed = self.head & COMPRESSED != 0;
        (code, is_compressed, self.detail) == (u64::from(value_type.code()), compressed, len)
    }

    fn to_bytes(self) -> [u8; LOCATION_LEN] {
        let mut bytes = [0; LOCATION_LEN];
        bytes[..8].copy_from_slice(&self.head.to_le_bytes());
        bytes[8..].copy_from_slice(&self.detail.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; LOCATION_LEN]) -> Self {
        let [head, detail] =
            [0, 8].map(|at| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
        Self { head, detail }
    }
}

/// The locations of all shared values.
pub(crate) enum ValueLocations {
    Memory(Vec<ValueLocation>),
    File(SpillFile),
}

impl ValueLocations {
    /// Returns `values` unset locations: in memory if that takes at most `budget` bytes, otherwise
    /// in a file.
    pub(crate) fn new(values: u64, budget: usize, folder: &Path) -> Result<Self> {
        let len = usize::try_from(values).unwrap_or(usize::MAX);
        if len <= budget / size_of::<ValueLocation>() {
            return Ok(Self::Memory(vec![ValueLocation::default(); len]));
        }
        let file = SpillFile::create(folder)?;
        if let Some(last) = values.checked_sub(1) {
            // Unset locations read as zeros.
            file.write_at(&[0; LOCATION_LEN], last * LOCATION_LEN as u64)?;
        }
        Ok(Self::File(file))
    }

    /// Sets the location of a value.
    pub(crate) fn set(&mut self, value: u64, location: ValueLocation) -> Result<()> {
        match self {
            Self::Memory(locations) => locations[value as usize] = location,
            Self::File(file) => file.write_at(&location.to_bytes(), value * LOCATION_LEN as u64)?,
        }
        Ok(())
    }

    /// Returns the location of a value, or `None` if it is not set.
    pub(crate) fn get(&self, value: u64) -> Result<Option<ValueLocation>> {
        let location = match self {
            Self::Memory(locations) => locations[value as usize],
            Self::File(file) => {
                let mut bytes = [0; LOCATION_LEN];
                file.read_at(&mut bytes, value * LOCATION_LEN as u64)?;
                ValueLocation::from_bytes(bytes)
            }
        };
        Ok((location.head != 0).then_some(location))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_in_a_file_read_as_they_were_written() -> Result<()> {
        let mut locations = ValueLocations::new(100, 0, &std::env::temp_dir())?;
        assert!(matches!(locations, ValueLocations::File(_)));
        let source = Source {
            number: 99,
            row: RowRef::default(),
            value_type: ValueType::F32List,
            compressed: true,
            offset: 5,
            stored_len: 1 << 32,
        };
        locations.set(99, ValueLocation::of(&source, 1 << 47, false))?;
        assert!(locations.get(98)?.is_none());
        let found = locations.get(99)?.expect("a location");
        assert_eq!(found.offset(), (1 << 47) + 5);
        assert!(found.is_stored_as(ValueType::F32List, true, 1 << 32));
        assert!(!found.is_stored_as(ValueType::F32List, false, 1 << 32));
        assert!(!found.is_stored_as(ValueType::F32List, true, 1));
        Ok(())
    }
}
