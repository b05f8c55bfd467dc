//! The layout of requests and replies.

/// The operation of a request, its second byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Gets a value.
    Get = 1,
    /// Stores a value.
    Set = 2,
    /// Gets a value, decompressed. The same as `Get`.
    GetZ = 3,
    /// Stores a value, compressed with zstd if that makes it shorter.
    SetZ = 4,
    /// Does nothing. In mrcache, it writes statistics to the log of the server.
    Stat = 5,
}

impl Op {
    /// Returns the operation with this number.
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Get,
            2 => Self::Set,
            3 => Self::GetZ,
            4 => Self::SetZ,
            5 => Self::Stat,
            _ => return None,
        })
    }

    /// Returns the number of bytes before the key.
    pub(super) fn header_len(self) -> usize {
        match self {
            Self::Stat => KEY_LEN,
            Self::Get | Self::GetZ => KEY_LEN + 2,
            Self::Set | Self::SetZ => VALUE_LEN + 4,
        }
    }
}

/// Offset of the operation. The byte before it is ignored.
pub(super) const OP: usize = 1;

/// Offset of the length of the key, 16 bits.
pub(super) const KEY_LEN: usize = 2;

/// Offset of the length of the value, 32 bits, if there is one.
pub(super) const VALUE_LEN: usize = 4;

const _: () = assert!(OP + 1 == KEY_LEN && KEY_LEN + 2 == VALUE_LEN);

/// The first bytes of replies in the older framing.
pub(super) const REPLY_PREFIX: [u8; 2] = [0, 1];
