//! Entries and statistics as JSON, in the form of `nuthatch dump` and `nuthatch info`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuthatch_snapshot::{Metadata, Stats, Value, ValueType};
use std::fmt::{Display, Write as _};

/// Returns an entry.
pub(crate) fn row(key: &[u8], value: &Value<'_>) -> String {
    let name = value.value_type().name();
    format!("{{\"key\":{},\"type\":\"{name}\",\"value\":{}}}", self::key(key), self::value(value))
}

pub(crate) fn key(key: &[u8]) -> String {
    std::str::from_utf8(key).map_or_else(|_| bytes(key), string)
}

pub(crate) fn value(value: &Value<'_>) -> String {
    match value {
        Value::Bytes(value) => bytes(value),
        Value::String(text) => string(text),
        Value::Bool(truth) => truth.to_string(),
        Value::I64(number) => number.to_string(),
        Value::F64(number) if number.is_finite() => float(*number),
        Value::F64(number) => format!("{{\"$f64\":{}}}", float(*number)),
        Value::I64List(numbers) => list(numbers.iter()),
        Value::F64List(numbers) if numbers.iter().all(|n| n.is_finite()) => {
            list(numbers.iter().map(|n| float(*n)))
        }
        Value::F64List(numbers) => {
            format!("{{\"$f64\":{}}}", list(numbers.iter().map(|n| float(*n))))
        }
        Value::F32List(numbers) => {
            format!("{{\"$f32\":{}}}", list(numbers.iter().map(|n| single(*n))))
        }
        Value::StringList(strings) => list(strings.iter().map(string)),
        Value::EmptyList => "[]".to_owned(),
        _ => unreachable!("opening rejects values of unknown types"),
    }
}

/// Returns the shortest decimal form of a number, or the name or the bits of one that is not
/// finite.
fn float(number: f64) -> String {
    match number {
        _ if number.is_finite() => format!("{number:?}"),
        _ if number.is_infinite() && number > 0.0 => "\"Infinity\"".to_owned(),
        _ if number.is_infinite() => "\"-Infinity\"".to_owned(),
        _ if number.to_bits() == f64::NAN.to_bits() => "\"NaN\"".to_owned(),
        _ => format!("\"0x{:016x}\"", number.to_bits()),
    }
}

/// Returns a 32-bit float as [`float`] does, converted to 64 bits if it is finite.
fn single(number: f32) -> String {
    match number {
        _ if !number.is_nan() => float(f64::from(number)),
        _ if number.to_bits() == f32::NAN.to_bits() => "\"NaN\"".to_owned(),
        _ => format!("\"0x{:08x}\"", number.to_bits()),
    }
}

pub(crate) fn list(items: impl Iterator<Item: Display>) -> String {
    format!("[{}]", items.map(|item| item.to_string()).collect::<Vec<_>>().join(","))
}

fn bytes(bytes: &[u8]) -> String {
    format!("{{\"$bytes\":\"{}\"}}", STANDARD.encode(bytes))
}

pub(crate) fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\0'..=' ' if character != ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// Returns the metadata as an object.
pub(crate) fn metadata(metadata: &Metadata<'_>) -> String {
    let pairs = metadata.iter().map(|(name, value)| {
        let text = std::str::from_utf8(value).map(string);
        format!("{}:{}", string(name), text.unwrap_or_else(|_| bytes(value)))
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

/// Returns the statistics with the names of `nuthatch info --json`.
pub(crate) fn stats(stats: &Stats) -> String {
    let types = ValueType::ALL.iter().filter(|value_type| stats.entries_of(**value_type) > 0);
    let types = types.map(|t| format!("\"{}\":{}", t.name(), stats.entries_of(*t)));
    let numbers = [
        ("file_bytes", stats.file_len),
        ("entries", stats.entries),
        ("key_bytes", stats.key_bytes),
        ("value_bytes", stats.value_bytes),
        ("stored_value_bytes", stats.stored_value_bytes),
        ("shared_entries", stats.shared_entries),
        ("compressed_entries", stats.compressed_entries),
        ("dictionary_bytes", stats.dictionary_bytes),
        ("index_bytes", stats.index_bytes),
        ("data_bytes", stats.data_bytes),
        ("partitions", stats.partitions),
        ("lines", stats.lines),
        ("max_probe", u64::from(stats.max_probe)),
        ("seed", stats.seed),
    ];
    let numbers = numbers.map(|(name, number)| format!("\"{name}\":{number}")).join(",");
    let types = types.collect::<Vec<_>>().join(",");
    format!("{{{numbers},\"entries_by_type\":{{{types}}}}}")
}
