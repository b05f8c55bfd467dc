//! Descriptions of text in error messages.

/// Describes the text at an offset.
#[cold]
pub(crate) fn describe(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let Some(&first) = rest.first() else { return "the end of the input".to_owned() };
    let word = |keep: fn(&u8) -> bool| {
        let len = rest.iter().take(40).take_while(|byte| keep(byte)).count();
        String::from_utf8_lossy(&rest[..len]).into_owned()
    };
    match first {
        b'\n' => "the end of the line".to_owned(),
        b'\r' if rest.get(1) == Some(&b'\n') => "the end of the line".to_owned(),
        b'"' => "a string".to_owned(),
        b'[' => "a list".to_owned(),
        b'{' => "an object".to_owned(),
        b'a'..=b'z' | b'A'..=b'Z' => word(u8::is_ascii_alphanumeric),
        b'0'..=b'9' | b'-' => word(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)),
        0..0x20 | 0x7f => format!("the control character 0x{first:02x}"),
        _ => {
            let chunk = rest[..rest.len().min(4)].utf8_chunks().next();
            match chunk.and_then(|chunk| chunk.valid().chars().next()) {
                Some(character) => format!("'{character}'"),
                None => format!("the byte 0x{first:02x}, which is not UTF-8"),
            }
        }
    }
}

/// Returns a text in quotes, shortened to 40 bytes.
#[cold]
pub(crate) fn quote(text: &[u8]) -> String {
    const MAX_LEN: usize = 40;
    let cut = if text.len() > MAX_LEN { "…" } else { "" };
    format!("\"{}{cut}\"", text[..text.len().min(MAX_LEN)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_at_an_offset_is_described() {
        for (text, expected) in [
            (&b""[..], "the end of the input"),
            (b"\n", "the end of the line"),
            (b"\r\n", "the end of the line"),
            (b"null,", "null"),
            (b"-1.5e+7}", "-1.5e+7"),
            (b"\"a\"", "a string"),
            ("é".as_bytes(), "'é'"),
            (b"\xff", "the byte 0xff, which is not UTF-8"),
            (b"\x01", "the control character 0x01"),
            (b"}", "'}'"),
        ] {
            assert_eq!(describe(text, 0), expected);
        }
    }
}
