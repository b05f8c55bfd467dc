//! CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected.
//!
//! Eight bytes are processed at a time, with a table for each (slicing-by-8: Kounavis and Berry, "A
//! systematic approach to building high performance software-based CRC generators", ISCC 2005). One
//! table alone costs a load for each byte that waits for the load before.

/// The bytes that are processed at a time.
const STEP: usize = 8;

/// `TABLES[n]` has the checksum of each byte that is followed by `n` zeros.
const TABLES: [[u16; 256]; STEP] = tables();

const fn tables() -> [[u16; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut zeros = 0;
        while zeros < STEP {
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

/// Computes the checksum of `bytes`.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let crc = steps.iter().fold(0u16, |crc, step| {
        let [b0, b1, b2, b3, b4, b5, b6, b7] = step.map(usize::from);
        let (high, low) = (usize::from(crc >> 8), usize::from(crc & 0xff));
        TABLES[7][high ^ b0]
            ^ TABLES[6][low ^ b1]
            ^ TABLES[5][b2]
            ^ TABLES[4][b3]
            ^ TABLES[3][b4]
            ^ TABLES[2][b5]
            ^ TABLES[1][b6]
            ^ TABLES[0][b7]
    });
    add_bytes(crc, rest)
}

/// Adds bytes to a checksum one at a time.
fn add_bytes(crc: u16, bytes: &[u8]) -> u16 {
    let next = |crc, byte: &u8| crc << 8 ^ TABLES[0][usize::from(crc >> 8 ^ u16::from(*byte))];
    bytes.iter().fold(crc, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random::Random;

    /// Checks the value that the catalogue of CRC algorithms lists for XMODEM.
    #[test]
    fn the_check_value_is_that_of_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn eight_bytes_at_a_time_have_the_checksum_of_one_at_a_time() {
        let mut random = Random::new(16);
        for len in 0..100 {
            let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            assert_eq!(crc16(&bytes), add_bytes(0, &bytes), "{bytes:?}");
        }
    }
}
