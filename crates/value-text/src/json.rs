//! JSON lines, in the form that `build` reads.

use super::{Number, number_list, string_list};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuthatch_snapshot::Value;

/// Appends a row as `{"key":…,"value":…}`, without a line end.
pub fn json_row(key: &[u8], value: &Value<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"key\":");
    match std::str::from_utf8(key) {
        Ok(key) => json_string(key, out),
        Err(_) => json_bytes(key, out),
    }
    out.extend_from_slice(b",\"value\":");
    json_value(value, out);
    out.push(b'}');
}

/// Appends a value.
pub fn json_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Bytes(bytes) => json_bytes(bytes, out),
        Value::String(text) => json_string(text, out),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::I64(int) => int.append(true, out),
        Value::F64(float) if float.is_special() => {
            tagged("$f64", out, |out| float.append(true, out));
        }
        Value::F64(float) => float.append(true, out),
        Value::I64List(list) => number_list(list, out),
        Value::F64List(list) if list.iter().any(|float| float.is_special()) => {
            tagged("$f64", out, |out| number_list(list, out));
        }
        Value::F64List(list) => number_list(list, out),
        Value::F32List([]) | Value::EmptyList => out.extend_from_slice(b"[]"),
        Value::F32List(list) => tagged("$f32", out, |out| number_list(list, out)),
        Value::StringList(list) => string_list(list.iter(), out),
        _ => unreachable!("opening rejects values of unknown types"),
    }
}

fn tagged(tag: &str, out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(tag.as_bytes());
    out.extend_from_slice(b"\":");
    value(out);
    out.push(b'}');
}

fn json_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    tagged("$bytes", out, |out| {
        out.push(b'"');
        out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
        out.push(b'"');
    });
}

/// Appends a string in quotes.
pub fn json_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(len) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        out.extend_from_slice(&rest[..len]);
        match rest[len] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            }
        }
        rest = &rest[len + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
