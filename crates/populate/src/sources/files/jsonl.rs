//! JSON lines: an object on each line, whose fields are the columns.

use super::csv::open_text;
use super::list::SourceFile;
use super::{RowReceiver, Stop, invalid};
use crate::job::Source;
use crate::sources::quoted;
use nuthatch_rows::{Cell, CellBuffers, Row};
use nuthatch_snapshot::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader};

const BUFFER_BYTES: usize = 1 << 20;

/// Reads a file.
pub(super) fn read(
    source: &Source,
    file: &SourceFile,
    receiver: &mut dyn RowReceiver,
) -> Result<(), Stop> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, open_text(file)?);
    let mut columns = FieldColumns::of(source);
    let mut known = 0;
    let (mut text, mut line) = (Vec::new(), 0_u64);
    loop {
        text.clear();
        let len =
            reader.read_until(b'\n', &mut text).map_err(|error| file.fault("read", &error))?;
        if len == 0 {
            return Ok(());
        }
        line += 1;
        receiver.count_bytes(len as u64);
        let json = text.strip_prefix(b"\xef\xbb\xbf").filter(|_| line == 1).unwrap_or(&text);
        if json.trim_ascii().is_empty() {
            continue;
        }
        let fields: Fields<'_> = serde_json::from_slice(json).map_err(|error| {
            let found = quoted(json.trim_ascii());
            invalid(file, format!("line {line}: expected a JSON object: {error}; found {found}"))
        })?;
        let mut cells = vec![None; columns.names.len()];
        for (name, value) in fields.0 {
            let index = columns.index(&name);
            cells.resize(columns.names.len().max(cells.len()), None);
            if cells[index].replace(value.get()).is_some() {
                let name = &columns.names[index];
                let message =
                    format!("line {line}: expected each field once, found \"{name}\" again");
                return Err(invalid(file, message).into());
            }
        }
        if columns.names.len() == columns.in_key {
            // No line so far has a field with a value.
            if let Some(at) = cells.iter().position(|cell| cell.is_none_or(|json| json == "null")) {
                let name = &columns.names[at];
                let message = format!(
                    "line {line}: column \"{name}\": expected a value for the key, found none"
                );
                return Err(invalid(file, message).into());
            }
            receiver.skip_row();
            continue;
        }
        if columns.names.len() > known {
            receiver.set_columns(&columns.names)?;
            known = columns.names.len();
        }
        receiver.row(&JsonRow(&cells))?;
    }
}

/// The columns: the fields found so far.
struct FieldColumns {
    names: Vec<String>,
    indexes: HashMap<String, usize>,
    /// The number of columns of the key, which come first.
    in_key: usize,
}

impl FieldColumns {
    /// Returns the columns that the job names.
    fn of(source: &Source) -> Self {
        let mut columns = Self { names: Vec::new(), indexes: HashMap::new(), in_key: 0 };
        let entries = &source.entries;
        for name in entries.key.columns() {
            columns.index(name);
        }
        columns.in_key = columns.names.len();
        for name in entries.values.iter().chain(entries.types.keys()) {
            columns.index(name);
        }
        columns
    }

    /// Returns the index of a field, after adding it.
    fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.indexes.get(name) {
            return *index;
        }
        let index = self.names.len();
        self.names.push(name.to_owned());
        self.indexes.insert(name.to_owned(), index);
        index
    }
}

/// The fields of an object, in order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;

        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldVisitor)
    }
}

/// The JSON texts of the fields.
struct JsonRow<'a>(&'a [Option<&'a str>]);

impl Row for JsonRow<'_> {
    fn cell<'r>(&'r self, column: usize, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String> {
        let Some(Some(json)) = self.0.get(column) else { return Ok(Cell::Null) };
        Ok(match json.as_bytes() {
            [b'n', ..] => Cell::Null,
            [b't', ..] => Cell::Value(Value::Bool(true)),
            [b'f', ..] => Cell::Value(Value::Bool(false)),
            [b'{', ..] => Cell::Json(json.as_bytes()),
            [b'[', ..] => Cell::JsonList(json.as_bytes()),
            [b'"', inner @ ..] if !inner.contains(&b'\\') => {
                Cell::Value(Value::String(&json[1..json.len() - 1]))
            }
            [b'"', ..] => {
                let text = serde_json::from_str(json);
                buffers.text = text.map_err(|error: serde_json::Error| error.to_string())?;
                Cell::Value(Value::String(&buffers.text))
            }
            _ => Cell::Value(number(json)?),
        })
    }
}

/// Returns the value of a number: an integer if it has only digits.
fn number(json: &str) -> Result<Value<'static>, String> {
    if json.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        let int = json.parse();
        return int
            .map(Value::I64)
            .map_err(|_| format!("expected an integer of at most 64 bits, found {json}"));
    }
    let float: f64 = fast_float2::parse(json).map_err(|error| error.to_string())?;
    if float.is_finite() {
        Ok(Value::F64(float))
    } else {
        Err(format!("expected a number that a 64-bit float can be, found {json}"))
    }
}
