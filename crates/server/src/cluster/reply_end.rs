//! Finds the end of a reply of RESP.

/// The place in a reply up to which it was examined.
#[derive(Debug)]
pub(crate) struct ReplyEnd {
    at: usize,
    /// The number of elements that are missing, with the reply itself.
    missing: u64,
}

impl Default for ReplyEnd {
    /// Begins with a new reply.
    fn default() -> Self {
        Self { at: 0, missing: 1 }
    }
}

impl ReplyEnd {
    /// Returns the length of the reply that begins these bytes; `None` if more have to arrive. No
    /// byte of a value is examined.
    ///
    /// # Errors
    ///
    /// The bytes are no reply of RESP.
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        const INVALID: &str = "expected a reply of RESP, found other bytes";
        while self.missing > 0 {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(line_end) = memchr::memchr(b'\n', rest) else { return Ok(None) };
            let number = || {
                let digits = rest[1..line_end].strip_suffix(b"\r")?;
                std::str::from_utf8(digits).ok()?.parse::<i64>().ok()
            };
            let mut len = line_end + 1;
            let mut elements = 0;
            match rest[0] {
                b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => {}
                b'$' | b'=' | b'!' => {
                    // A null has no bytes.
                    if let Ok(value_len) = usize::try_from(number().ok_or(INVALID)?) {
                        len = len.saturating_add(value_len).saturating_add(b"\r\n".len());
                    }
                }
                b'*' | b'~' | b'>' => {
                    elements = u64::try_from(number().ok_or(INVALID)?).unwrap_or(0);
                }
                b'%' => {
                    let pairs = u64::try_from(number().ok_or(INVALID)?).unwrap_or(0);
                    elements = pairs.saturating_mul(2);
                }
                _ => return Err(INVALID),
            }
            if rest.len() < len {
                return Ok(None);
            }
            self.at += len;
            self.missing = (self.missing - 1).saturating_add(elements);
        }
        Ok(Some(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_at_the_same_place_however_it_arrives() {
        for reply in [
            "+OK\r\n",
            "-ERR no\r\n",
            "$-1\r\n",
            "_\r\n",
            "$0\r\n\r\n",
            "$5\r\n$1\r\n*\r\n",
            "*-1\r\n",
            "*0\r\n",
            "*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n#t\r\n",
            "%1\r\n$1\r\na\r\n~2\r\n,1.5\r\n(12\r\n",
        ] {
            let bytes = format!("{reply}+next\r\n").into_bytes();
            let mut end = ReplyEnd::default();
            let found = (0..=bytes.len()).find_map(|len| end.find(&bytes[..len]).expect("valid"));
            assert_eq!(found, Some(reply.len()), "{reply}");
            assert_eq!(ReplyEnd::default().find(&bytes), Ok(Some(reply.len())), "{reply}");
        }
        assert!(ReplyEnd::default().find(b"HTTP/1.1 200\r\n").is_err());
        assert!(ReplyEnd::default().find(b"$x\r\n").is_err());
    }
}
