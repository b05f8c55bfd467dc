//! The header of a delta.

use blake3::Hash;
use nuthatch_snapshot::{BuildParameters, Compression};

const MAGIC: [u8; 8] = *b"\x89NUD\r\n\x1a\n";
const VERSION: u32 = 1;
/// Length of the header in bytes.
pub(super) const LEN: usize = 112;

/// What a delta leads from and to, and how the new file is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) parameters: BuildParameters,
    /// The revision of the writer that built the new file.
    pub(crate) revision: u64,
    /// The hash of the old file.
    pub(crate) from: Hash,
    /// The hash of the new file.
    pub(crate) to: Hash,
}

impl Header {
    /// Returns the bytes of the header.
    pub(super) fn encode(&self) -> [u8; LEN] {
        let BuildParameters { seed, compression, shard } = self.parameters;
        let level: i32 = match compression {
            Compression::Zstd { level } => level,
            _ => 0,
        };
        let (number, of) = shard.unwrap_or_default();
        let mut bytes = [0; LEN];
        let fields: [&[u8]; 9] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &level.to_le_bytes(),
            &self.revision.to_le_bytes(),
            &seed.to_le_bytes(),
            &number.to_le_bytes(),
            &of.to_le_bytes(),
            self.from.as_bytes(),
            self.to.as_bytes(),
        ];
        let mut at = 0;
        for field in fields {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        }
        bytes
    }

    /// Reads a header. Fails with what was expected and what was found.
    pub(super) fn decode(bytes: &[u8; LEN]) -> Result<Self, (String, String)> {
        let mut rest = bytes.as_slice();
        let magic = take::<8>(&mut rest);
        if magic != MAGIC {
            return Err(("the magic of a delta".to_owned(), format!("{magic:02x?}")));
        }
        let version = u32::from_le_bytes(take(&mut rest));
        if version != VERSION {
            return Err((format!("version {VERSION}"), format!("version {version}")));
        }
        let compression = match i32::from_le_bytes(take(&mut rest)) {
            0 => Compression::None,
            level @ 1..=22 => Compression::Zstd { level },
            other => return Err(("a compression level from 0 to 22".into(), other.to_string())),
        };
        let revision = u64::from_le_bytes(take(&mut rest));
        let seed = u64::from_le_bytes(take(&mut rest));
        let shard = match (u32::from_le_bytes(take(&mut rest)), u32::from_le_bytes(take(&mut rest)))
        {
            (0, 0) => None,
            (number, of @ 1..=65_536) if number < of => Some((number, of)),
            (number, of) => {
                return Err(("the number of a shard".into(), format!("shard {number} of {of}")));
            }
        };
        let (from, to) = (Hash::from_bytes(take(&mut rest)), Hash::from_bytes(take(&mut rest)));
        let parameters = BuildParameters { seed, compression, shard };
        Ok(Self { parameters, revision, from, to })
    }
}

/// Takes the next bytes of a header.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (field, others) = rest.split_first_chunk().expect("the fields take LEN bytes");
    *rest = others;
    *field
}

#[cfg(test)]
mod tests {
    use super::{Header, LEN};
    use blake3::hash;
    use nuthatch_snapshot::{BuildParameters, Compression};

    fn header(shard: Option<(u32, u32)>, compression: Compression) -> Header {
        let parameters = BuildParameters { seed: 7, compression, shard };
        Header { parameters, revision: 1 << 32, from: hash(b"old"), to: hash(b"new") }
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for shard in [None, Some((0, 1)), Some((3, 65_536))] {
            for compression in [Compression::None, Compression::Zstd { level: 22 }] {
                let header = header(shard, compression);
                assert_eq!(Header::decode(&header.encode()), Ok(header));
            }
        }
    }

    #[test]
    fn fields_out_of_range_are_refused() {
        let valid = header(None, Compression::None).encode();
        let cases: [(usize, u8, &str); 4] = [
            (0, 0, "the magic of a delta"),
            (8, 2, "version 1"),
            (12, 23, "a compression level from 0 to 22"),
            (32, 1, "the number of a shard"),
        ];
        for (at, byte, expected) in cases {
            let mut bytes: [u8; LEN] = valid;
            bytes[at] = byte;
            let (found, _) = Header::decode(&bytes).expect_err("refused");
            assert_eq!(found, expected);
        }
    }
}
