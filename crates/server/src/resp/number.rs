//! Lengths and counts in the lines of RESP.

/// Parses the number between `mark` and CR LF at the start of `bytes`, if it has one to six digits,
/// as in nearly every line. Returns the number and the length of the line; `None` if the general
/// path must decide.
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
    fn short_lines_have_their_number() {
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
