//! Where the fields of a request and of a reply are.

/// What a request asks for: its second byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// A value.
    Get = 1,
    /// Store a value.
    Set = 2,
    /// A value that is stored with zstd, decompressed.
    GetZ = 3,
    /// Store a value with zstd.
    SetZ = 4,
    /// Statistics, in the log of the server.
    Stat = 5,
}

impl Op {
    /// The operation with this number.
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

    /// Bytes before the key.
    pub(super) fn header_len(self) -> usize {
        match self {
            Self::Stat => KEY_LEN,
            Self::Get | Self::GetZ => KEY_LEN + 2,
            Self::Set | Self::SetZ => VALUE_LEN + 4,
        }
    }
}

/// Offset of the operation; before it is a byte that nobody reads.
pub(super) const OP: usize = 1;

/// Offset of the length of the key, 16 bits.
pub(super) const KEY_LEN: usize = 2;

/// Offset of the length of the value, 32 bits, where one follows.
pub(super) const VALUE_LEN: usize = 4;

const _: () = assert!(OP + 1 == KEY_LEN && KEY_LEN + 2 == VALUE_LEN);

/// What replies of the older framing start with.
pub(super) const REPLY_PREFIX: [u8; 2] = [0, 1];
