//! Numbers as RESP writes them.

/// The integer that is the whole of `text`, in the one form Redis takes: no sign but `-`, no
/// leading zeros, no spaces, within 64 bits.
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // Downwards, since there is one more number below zero than above.
    let below_zero = digits.iter().try_fold(0i64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_sub(i64::from(byte - b'0')),
        _ => None,
    })?;
    if negative { Some(below_zero) } else { below_zero.checked_neg() }
}

/// The number between `mark` and CR LF at the start of `bytes`, and the length of the line: the
/// form nearly every line has, of one to six digits. `None` says nothing: read it the long way.
#[inline]
pub(super) fn short(mark: u8, bytes: &[u8]) -> Option<(u32, usize)> {
    let line: &[u8; 9] = bytes.first_chunk()?;
    let digit = |at: usize| u32::from(line[at].wrapping_sub(b'0'));
    let mut number = digit(1);
    if line[0] != mark || number > 9 {
        return None;
    }
    for at in 2..8 {
        if line[at] == b'\r' {
            return (line[at + 1] == b'\n').then_some((number, at + 2));
        }
        if digit(at) > 9 || number == 0 {
            return None;
        }
        number = number * 10 + digit(at);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_form() {
        for number in [0, 1, -1, 10, 1_000_000, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "-0",
            "00",
            "01",
            "-01",
            "+1",
            " 1",
            "1 ",
            "1\0",
            "a",
            "1a",
            "0x1",
            "1.0",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999999",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_short_line_reads_as_the_long_way_does() {
        let read = |line: &str| short(b'$', format!("${line}rest of it").as_bytes());
        for number in [0, 1, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 99_999, 999_999] {
            let line = format!("{number}\r\n");
            assert_eq!(read(&line), Some((number, 1 + line.len())));
        }
        for line in ["", "\r\n", "-1\r\n", "01\r\n", "000\r\n", "1x\r\n", "1\n", "12\rx"] {
            assert_eq!(read(line), None, "{line:?}");
        }
        assert_eq!(short(b'$', b"*1\r\nrest of it"), None);
        assert_eq!(short(b'$', b"$1\r\n"), None, "too little to look at in one go");
    }
}
