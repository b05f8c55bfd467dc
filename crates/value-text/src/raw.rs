//! Values as bytes, for `get --raw`.

use nuthatch_snapshot::{StringList, Value};

/// Appends the bytes of a value: strings and bytes unchanged; numbers, also in lists,
/// little-endian; a list of strings as their number, the end offset of each, and all strings.
pub fn raw_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bool(truth) => out.push(u8::from(*truth)),
        Value::I64(int) => out.extend_from_slice(&int.to_le_bytes()),
        Value::F64(float) => out.extend_from_slice(&float.to_le_bytes()),
        Value::I64List(list) => list.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes())),
        Value::F64List(list) => list.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes())),
        Value::F32List(list) => list.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes())),
        Value::StringList(list) => raw_strings(list, out),
        Value::EmptyList => {}
        _ => unreachable!("opening rejects values of unknown types"),
    }
}

fn raw_strings(list: &StringList<'_>, out: &mut Vec<u8>) {
    if list.is_empty() {
        return;
    }
    // A stored list has at most 4 GiB, so its count and offsets fit into 32 bits.
    out.extend_from_slice(&(list.len() as u32).to_le_bytes());
    let mut end = 0_u32;
    for string in list.iter() {
        end = end.wrapping_add(string.len() as u32);
        out.extend_from_slice(&end.to_le_bytes());
    }
    for string in list.iter() {
        out.extend_from_slice(string.as_bytes());
    }
}
