//! The checksum of a word from a table for each of its bytes (slicing-by-8: Kounavis and Berry, "A
//! systematic approach to building high performance software-based CRC generators", ISCC 2005).
//! With one table, the load for each byte would depend on the load before.

use super::WORD;

/// `TABLES[n]` has the checksum of each byte that is followed by `n` zeros.
const TABLES: [[u16; 256]; WORD] = tables();

const fn tables() -> [[u16; 256]; WORD] {
    let mut tables = [[0; 256]; WORD];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut zeros = 0;
        while zeros < WORD {
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
                bit += 1;
            }
            tables[zeros][byte] = crc;
            zeros += 1;
        }
        byte += 1;
    }
    tables
}

/// Adds the bytes of a word to a checksum, the highest first.
#[inline]
pub(super) fn add(crc: u16, word: u64) -> u16 {
    let word = word ^ u64::from(crc) << 48;
    let [b0, b1, b2, b3, b4, b5, b6, b7] = word.to_le_bytes().map(usize::from);
    TABLES[7][b7]
        ^ TABLES[6][b6]
        ^ TABLES[5][b5]
        ^ TABLES[4][b4]
        ^ TABLES[3][b3]
        ^ TABLES[2][b2]
        ^ TABLES[1][b1]
        ^ TABLES[0][b0]
}
