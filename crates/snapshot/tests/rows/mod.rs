//! Rows that own their values, and generators of rows for property tests.

use nuthatch_snapshot::{Result, StringListBuf, Summary, Value, ValueType, WriterOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

/// A value that owns its parts. Lists are never empty; [`Owned::EmptyList`] is.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Bytes(Vec<u8>),
    String(String),
    Bool(bool),
    I64(i64),
    F64(f64),
    I64List(Vec<i64>),
    F64List(Vec<f64>),
    F32List(Vec<f32>),
    StringList(Vec<String>),
    EmptyList,
}

impl Owned {
    pub(crate) fn with<R>(&self, f: impl FnOnce(Value<'_>) -> R) -> R {
        match self {
            Self::Bytes(bytes) => f(Value::Bytes(bytes)),
            Self::String(text) => f(Value::String(text)),
            Self::Bool(truth) => f(Value::Bool(*truth)),
            Self::I64(number) => f(Value::I64(*number)),
            Self::F64(number) => f(Value::F64(*number)),
            Self::I64List(list) => f(Value::I64List(list)),
            Self::F64List(list) => f(Value::F64List(list)),
            Self::F32List(list) => f(Value::F32List(list)),
            Self::StringList(list) => {
                f(Value::StringList(list.iter().collect::<StringListBuf>().as_list()))
            }
            Self::EmptyList => f(Value::EmptyList),
        }
    }

    pub(crate) fn value_type(&self) -> ValueType {
        self.with(|value| value.value_type())
    }

    /// Returns the stored bytes, as the format page specifies them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::String(text) => text.clone().into_bytes(),
            Self::Bool(truth) => vec![u8::from(*truth)],
            Self::I64(number) => number.to_le_bytes().into(),
            Self::F64(number) => number.to_le_bytes().into(),
            Self::I64List(list) => list.iter().flat_map(|n| n.to_le_bytes()).collect(),
            Self::F64List(list) => list.iter().flat_map(|n| n.to_le_bytes()).collect(),
            Self::F32List(list) => list.iter().flat_map(|n| n.to_le_bytes()).collect(),
            Self::StringList(list) => string_list_bytes(list),
            Self::EmptyList => Vec::new(),
        }
    }

    /// Returns whether the result of a lookup is this value: its type and its bits, so that NaN
    /// equals itself.
    pub(crate) fn is(&self, value: Value<'_>) -> bool {
        let found = match value {
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::String(text) => Self::String(text.to_owned()),
            Value::Bool(truth) => Self::Bool(truth),
            Value::I64(number) => Self::I64(number),
            Value::F64(number) => Self::F64(number),
            Value::I64List(list) => Self::I64List(list.to_vec()),
            Value::F64List(list) => Self::F64List(list.to_vec()),
            Value::F32List(list) => Self::F32List(list.to_vec()),
            Value::StringList(list) => Self::StringList(list.iter().map(str::to_owned).collect()),
            Value::EmptyList => Self::EmptyList,
            _ => unreachable!("opening rejects values of unknown types"),
        };
        (found.value_type(), found.bytes()) == (self.value_type(), self.bytes())
    }
}

/// Encodes a list of strings: count, ends, text.
fn string_list_bytes(list: &[String]) -> Vec<u8> {
    let mut bytes = (list.len() as u32).to_le_bytes().to_vec();
    let mut end = 0;
    for string in list {
        end += string.len() as u32;
        bytes.extend_from_slice(&end.to_le_bytes());
    }
    bytes.extend(list.iter().flat_map(|string| string.bytes()));
    bytes
}

pub(crate) type Row = (Vec<u8>, Owned);

/// Builds a snapshot. The position of each row is its index.
pub(crate) fn build(path: &Path, options: &WriterOptions, rows: &[Row]) -> Result<Summary> {
    let mut writer = options.create(path)?;
    for (key, value) in rows {
        value.with(|value| writer.insert(key, value))?;
    }
    writer.finish()
}

/// Generates keys with common prefixes and lengths around those that the code treats differently.
pub(crate) fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![
        6 => 0..=20_usize,
        2 => prop::sample::select(vec![7_usize, 8, 9, 15, 16, 17, 18]),
        1 => prop::sample::select(vec![253_usize, 254, 255, 256, 257]),
        1 => 0..=300_usize,
    ];
    let prefix = prop::sample::select(vec![&b""[..], b"user:", b"user:1.na", b"\0\0", b"\xff"]);
    (len, prefix, any::<[u8; 3]>(), any::<bool>()).prop_map(|(len, prefix, noise, at_end)| {
        let mut key: Vec<u8> = prefix.iter().copied().cycle().take(len).collect();
        key.resize(len, b'k');
        let from = if at_end { len.saturating_sub(3) } else { 0 };
        for (byte, noise) in key[from..].iter_mut().zip(noise) {
            *byte = noise;
        }
        key
    })
}

/// Generates lengths of stored values around those at which the format changes.
fn any_len() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 0..=40_usize,
        2 => prop::sample::select(vec![30_usize, 31, 32, 33]),
        2 => prop::sample::select(vec![254_usize, 255, 256, 257]),
        1 => 0..=2000_usize,
    ]
}

/// Generates text of `len` bytes, partly not ASCII, with few different texts of each length.
fn text(len: usize, kind: u8) -> String {
    let letters = ["n", "u", "t", "ö", "嘴"];
    let mut text = String::new();
    let mut next = usize::from(kind % 4);
    while text.len() < len {
        let letter = letters[next % letters.len()];
        text.push_str(if text.len() + letter.len() <= len { letter } else { "x" });
        next += usize::from(kind % 4);
    }
    text
}

pub(crate) fn any_value() -> impl Strategy<Value = Owned> {
    let text = || (any_len(), any::<u8>()).prop_map(|(len, kind)| text(len, kind));
    let bytes = (any_len(), 0..4_u8)
        .prop_map(|(len, kind)| Owned::Bytes((0..len).map(|i| (i * i) as u8 ^ kind).collect()));
    let numbers = || (1..70_u64, prop_oneof![Just(0), Just(7_u64.wrapping_neg()), any::<u64>()]);
    let list = |(len, first): (u64, u64)| (0..len).map(move |i| first.wrapping_add(i));
    prop_oneof![
        2 => bytes,
        3 => text().prop_map(Owned::String),
        1 => any::<bool>().prop_map(Owned::Bool),
        1 => any::<i64>().prop_map(Owned::I64),
        1 => prop::num::f64::ANY.prop_map(Owned::F64),
        1 => numbers().prop_map(move |n| Owned::I64List(list(n).map(u64::cast_signed).collect())),
        1 => numbers()
            .prop_map(move |n| Owned::F64List(list(n).map(f64::from_bits).collect())),
        1 => numbers()
            .prop_map(move |n| Owned::F32List(list(n).map(|n| f32::from_bits(n as u32)).collect())),
        1 => vec(text(), 1..5).prop_map(Owned::StringList),
        1 => Just(Owned::EmptyList),
    ]
}
