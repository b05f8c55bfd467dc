//! Detects HTTP requests on the ports of the cache.
//!
//! A web page can make a browser send `POST` with any body to any address that the browser reaches.
//! A text protocol that skips unknown lines would execute the commands in that body (cross-protocol
//! attack). Therefore a line that begins with `POST` or `Host:` closes the connection before
//! anything after it is executed. Browsers send `Host:` with every request.

/// Methods with which browsers begin an HTTP request.
const METHODS: [&[u8]; 7] =
    [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH "];

/// Returns whether the first word of a request is `POST` or begins with `Host:`, in any case.
pub(crate) fn is_http_word(word: &[u8]) -> bool {
    let is_host = word.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"host:"));
    is_host || word.eq_ignore_ascii_case(b"post")
}

/// Returns whether a line begins with `POST` or `Host:`, in any case.
pub(crate) fn is_http_line(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.next().is_some_and(is_http_word)
}

/// Returns whether any line of a text begins with `POST` or `Host:`, in any case.
pub(crate) fn has_http_line(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(is_http_line)
}

/// Returns whether the first bytes of a connection are those of an HTTP request.
pub(crate) fn begins_like_http(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| bytes.starts_with(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_distinguished_from_commands() {
        for line in ["POST / HTTP/1.1\r", "post", " Host: localhost", "host:localhost", "HOST:\r"] {
            assert!(is_http_line(line.as_bytes()), "{line}");
            assert!(has_http_line(format!("GET / HTTP/1.1\r\n{line}\r\n").as_bytes()), "{line}");
        }
        for line in ["", "posts a", "get post", "set host: 0 0 1", "hosts", "poste restante"] {
            assert!(!is_http_line(line.as_bytes()), "{line}");
        }
        assert!(begins_like_http(b"DELETE /k HTTP/1.1") && !begins_like_http(b"\x00\x01\x01\x00k"));
    }
}
