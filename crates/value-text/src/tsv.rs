//! TSV fields, in the form that `build` reads.

use super::{Number, number_list, string_list};
use nuthatch_snapshot::Value;
use std::io::Write;

/// Appends a value as the field of its type, before escaping: strings and bytes as they are, lists
/// as JSON.
pub fn tsv_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::I64(int) => int.append(false, out),
        Value::F64(float) => float.append(false, out),
        Value::I64List(list) => number_list(list, out),
        Value::F64List(list) => number_list(list, out),
        Value::F32List(list) => number_list(list, out),
        Value::StringList(list) => string_list(list.iter(), out),
        Value::EmptyList => out.extend_from_slice(b"[]"),
        _ => unreachable!("opening rejects values of unknown types"),
    }
}

/// Appends a field with escapes for backslashes, control characters, and bytes that are not UTF-8.
pub fn tsv_escape(field: &[u8], out: &mut Vec<u8>) {
    for chunk in field.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(|c: char| c == '\\' || c.is_control()) {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let mut characters = rest[at..].chars();
            match characters.next().unwrap_or_default() {
                '\\' => out.extend_from_slice(b"\\\\"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                control => hexadecimal(control.encode_utf8(&mut [0; 4]).as_bytes(), out),
            }
            rest = characters.as_str();
        }
        out.extend_from_slice(rest.as_bytes());
        hexadecimal(chunk.invalid(), out);
    }
}

fn hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        // Writing to a vector cannot fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_fields_are_one_safe_line() {
        for (field, escaped) in [
            (&b"plain \xc3\xa9"[..], "plain é"),
            (b"a\tb\nc\rd\\e", r"a\tb\nc\rd\\e"),
            (b"\x1b[31m\x00\x7f", r"\x1b[31m\x00\x7f"),
            (b"\xff\xc3\xc3\xa9", r"\xff\xc3é"),
            ("\u{85}".as_bytes(), r"\xc2\x85"),
        ] {
            let mut out = Vec::new();
            tsv_escape(field, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), escaped);
        }
    }
}
