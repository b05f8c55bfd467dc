//! CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected.

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Computes the checksum of `bytes`.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| crc << 8 ^ TABLE[usize::from(crc >> 8 ^ u16::from(*byte))])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the value that the catalogue of CRC algorithms lists for XMODEM.
    #[test]
    fn the_check_value_is_that_of_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }
}
