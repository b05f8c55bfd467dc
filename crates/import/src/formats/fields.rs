//! JSON objects of any shape as rows: one field has the key. Either one other field has the value,
//! or all others have values, under the keys `<key>.<field>`.
//!
//! Fields of objects within objects get keys with the names of all fields on the way, such as
//! `<key>.<field>.<field>`. `null` has no value.

use super::columns::ColumnNames;
use crate::fault::{Fault, RowFault, Scan};
use crate::json::{MAX_DEPTH, Number, Scanner, ValueBuffers};
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use std::io::Write;

/// The buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    name: String,
    key: Vec<u8>,
    value: ValueBuffers,
}

impl Buffers {
    /// Sets the key of the next value.
    pub(crate) fn set_key(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// Parses the name of a field as a key, and moves to its value.
    pub(super) fn read_name(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        let name = field_name(scanner, &mut self.name)?;
        self.key.clear();
        self.key.extend_from_slice(name.as_bytes());
        Ok(())
    }
}

/// A sink for the rows of one object, and the line in which it begins.
pub(crate) struct Rows<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) line: u64,
    /// The offset of the key, for errors.
    pub(crate) key_at: usize,
    pub(crate) f32_keys: &'a F32Keys,
}

/// Parses an object and adds its rows. The fields of `names` have the key and the value.
pub(super) fn object<S: RowSink>(
    names: &ColumnNames,
    scanner: &mut Scanner<'_>,
    buffers: &mut Buffers,
    rows: Rows<'_, S>,
) -> Result<(), RowFault> {
    let start = scanner.at;
    let key_at = find_key(names, scanner, buffers)?;
    scanner.at = start;
    let mut rows = Rows { key_at, ..rows };
    let mut is_value_found = false;
    each_field::<RowFault>(scanner, |scanner| {
        let (at, key_len) = (scanner.at, buffers.key.len());
        let name = field_name(scanner, &mut buffers.name)?;
        let is_key = name == names.key;
        let is_value = names.value.as_deref().is_none_or(|value| name == value);
        if names.value.is_none() {
            push_name(&mut buffers.key, name);
        }
        if is_key && scanner.at != key_at {
            let found = format!("\"{}\" again", names.key);
            return Err(Fault::new(at, "the field with the key once", found).into());
        }
        if is_value && (!is_key || names.value.is_some()) {
            is_value_found = true;
            add(scanner, 1, buffers, &mut rows)?;
        } else {
            scanner.skip_value(1, &mut buffers.name)?;
        }
        buffers.key.truncate(key_len);
        Ok(())
    })?;
    match &names.value {
        Some(value) if !is_value_found => {
            let expected = format!("the field \"{value}\", which can be null");
            Err(Fault::new(scanner.at - 1, expected, "'}'").into())
        }
        _ => Ok(()),
    }
}

/// Finds the field with the key, and writes the key to the buffer. Returns its offset.
fn find_key(names: &ColumnNames, scanner: &mut Scanner<'_>, buffers: &mut Buffers) -> Scan<usize> {
    let mut key_at = None;
    each_field::<Fault>(scanner, |scanner| {
        let is_key = field_name(scanner, &mut buffers.name)? == names.key;
        if is_key && key_at.is_none() {
            key_at = Some(scanner.at);
            read_key(scanner, buffers)?;
        } else {
            scanner.skip_value(1, &mut buffers.name)?;
        }
        Ok(())
    })?;
    key_at.ok_or_else(|| {
        let expected = format!("the field \"{}\", which has the key", names.key);
        Fault::new(scanner.at - 1, expected, "'}'")
    })
}

/// Calls `field` at the name of each field of an object.
fn each_field<E: From<Fault>>(
    scanner: &mut Scanner<'_>,
    mut field: impl FnMut(&mut Scanner<'_>) -> Result<(), E>,
) -> Result<(), E> {
    scanner.expect(b'{', "an object with the fields of a row")?;
    scanner.skip_blank();
    if scanner.consume(b'}') {
        return Ok(());
    }
    loop {
        field(scanner)?;
        if !scanner.next_element(b'}', "',' or '}' after the field")? {
            return Ok(());
        }
    }
}

/// Parses the name of a field, and moves to its value.
fn field_name<'a, 't: 'a>(scanner: &mut Scanner<'t>, unescaped: &'a mut String) -> Scan<&'a str> {
    let name = scanner.string(unescaped, "a field name")?;
    scanner.skip_blank();
    scanner.expect(b':', "':' after the field name")?;
    scanner.skip_blank();
    Ok(name.unwrap_or(unescaped))
}

/// Parses a key: a string, bytes, or an integer as its decimal text.
fn read_key(scanner: &mut Scanner<'_>, buffers: &mut Buffers) -> Scan<()> {
    const KEY: &str = "a key: a string, an integer or {\"$bytes\": \"base64\"}";
    let (at, Buffers { name, key, .. }) = (scanner.at, buffers);
    match scanner.peek() {
        Some(b'{') => return scanner.tagged_bytes(name, key),
        Some(b'-' | b'0'..=b'9') => match scanner.number(KEY)? {
            Number::Int(int) => {
                key.clear();
                // Writing to a vector cannot fail.
                let _ = write!(key, "{int}");
            }
            Number::Float(_) => return Err(scanner.fault_at(at, KEY)),
        },
        _ => {
            let text = scanner.string(name, KEY)?.unwrap_or(name);
            key.clear();
            key.extend_from_slice(text.as_bytes());
        }
    }
    Ok(())
}

fn push_name(key: &mut Vec<u8>, name: &str) {
    key.push(b'.');
    key.extend_from_slice(name.as_bytes());
}

/// Adds the value at the current position under the key in the buffer, or the values of the fields
/// of an object. `depth` is the number of objects around the value.
pub(crate) fn add<S: RowSink>(
    scanner: &mut Scanner<'_>,
    depth: usize,
    buffers: &mut Buffers,
    rows: &mut Rows<'_, S>,
) -> Result<(), RowFault> {
    if scanner.consume_bytes(b"null") {
        return Ok(());
    }
    if scanner.peek() == Some(b'{') && !is_tagged(scanner) {
        if depth == MAX_DEPTH {
            return Err(scanner.too_deep().into());
        }
        return each_field(scanner, |scanner| {
            let key_len = buffers.key.len();
            let name = field_name(scanner, &mut buffers.name)?;
            push_name(&mut buffers.key, name);
            add(scanner, depth + 1, buffers, rows)?;
            buffers.key.truncate(key_len);
            Ok(())
        });
    }
    let Buffers { key, value, .. } = buffers;
    let parsed = scanner.value(rows.f32_keys.contains(key), value)?;
    rows.sink
        .row(rows.line, key, value.value(parsed))
        .map_err(|error| RowFault::from_sink(rows.key_at, error))
}

/// Returns whether the object at the current position represents a value, such as
/// `{"$f64": "NaN"}`.
fn is_tagged(scanner: &mut Scanner<'_>) -> bool {
    let start = scanner.at;
    scanner.at += 1;
    scanner.skip_blank();
    let tags = [&b"\"$bytes\""[..], b"\"$f64\"", b"\"$f32\""];
    let is_tagged = tags.iter().any(|tag| scanner.consume_bytes(tag));
    scanner.at = start;
    is_tagged
}
