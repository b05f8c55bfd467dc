//! Replies of the protocol of Redis (RESP2).

use std::io::{self, BufRead, Read};

/// Maximum length of a string of a reply, and of a line.
const MAX_LEN: u64 = 64 << 20;

/// Maximum elements of an array.
const MAX_ELEMENTS: usize = 1 << 20;

/// Maximum depth of arrays in each other.
const MAX_DEPTH: u32 = 4;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A string, a status or an integer.
    Text(String),
    Null,
    /// The text of an error.
    Error(String),
    Array(Vec<Self>),
}

impl Reply {
    /// Reads a reply.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        Self::read_at(from, 0)
    }

    fn read_at(from: &mut impl BufRead, depth: u32) -> io::Result<Self> {
        let mut line = String::new();
        if from.take(MAX_LEN).read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it"));
        }
        let other = || {
            let start: String = line.trim_end().chars().take(40).collect();
            // The first byte of an alert of TLS.
            let advice = if start.starts_with('\u{15}') { ": connect with --tls" } else { "" };
            let text =
                format!("expected a reply of the protocol of Redis, found {start:?}{advice}");
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let kind = line.chars().next().filter(char::is_ascii).ok_or_else(other)?;
        let rest = line[1..].strip_suffix("\r\n").ok_or_else(other)?;
        match kind {
            '+' | ':' => Ok(Self::Text(rest.to_owned())),
            '-' => Ok(Self::Error(rest.to_owned())),
            '$' | '*' if rest == "-1" => Ok(Self::Null),
            '$' => {
                let len: u64 = rest.parse().ok().filter(|len| *len <= MAX_LEN).ok_or_else(other)?;
                let mut text = Vec::new();
                from.take(len + 2).read_to_end(&mut text)?;
                if !text.ends_with(b"\r\n") || text.len() as u64 != len + 2 {
                    return Err(other());
                }
                text.truncate(text.len() - 2);
                Ok(Self::Text(String::from_utf8_lossy(&text).into_owned()))
            }
            '*' => {
                let len = rest.parse().ok().filter(|len| *len <= MAX_ELEMENTS && depth < MAX_DEPTH);
                let len: usize = len.ok_or_else(other)?;
                let elements = (0..len).map(|_| Self::read_at(from, depth + 1));
                elements.collect::<io::Result<_>>().map(Self::Array)
            }
            _ => Err(other()),
        }
    }

    /// Returns the text of a string; empty for other replies.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Null | Self::Error(_) | Self::Array(_) => "",
        }
    }

    /// Returns the pairs of a map.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let elements = match self {
            Self::Array(elements) => elements.as_slice(),
            Self::Text(_) | Self::Null | Self::Error(_) => &[],
        };
        elements.chunks_exact(2).map(|pair| (pair[0].text(), pair[1].text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let read = |text: &str| Reply::read(&mut text.as_bytes());
        let reply = read("*4\r\n$1\r\na\r\n:12\r\n+OK\r\n$-1\r\n").expect("a reply");
        assert_eq!(reply.pairs().collect::<Vec<_>>(), [("a", "12"), ("OK", "")]);
        assert_eq!(read("-ERR no\r\n").expect("a reply"), Reply::Error("ERR no".to_owned()));
        let deep = "*1\r\n".repeat(20);
        for other in ["HTTP/1.1 400\r\n", "$5\r\nab\r\n", "*-5\r\n", "$x\r\n", "é", "+OK", &deep] {
            assert!(read(other).is_err(), "{other}");
        }
        assert_eq!(read("").expect_err("the end").kind(), io::ErrorKind::UnexpectedEof);
    }
}
