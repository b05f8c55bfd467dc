//! Conversion of a column to a type that the job names.

use super::cell::Cell;
use nuthatch_import::{Converter, FieldType, TextError};
use nuthatch_snapshot::{StringListBuf, Value};

/// Floats below this number are integers of at most 64 bits if they have no fraction: 2^63.
const MAX_EXACT: f64 = 9_223_372_036_854_775_808.0;

/// The type that a job names for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// The type of the entries.
    Field(FieldType),
    /// An entry for each field of a JSON object, under `KEY.FIELD`; other JSON as its value.
    Flatten,
}

impl ColumnType {
    /// The types by name.
    pub const NAMES: [(&'static str, Self); 10] = [
        ("bytes", Self::Field(FieldType::Bytes)),
        ("string", Self::Field(FieldType::String)),
        ("bool", Self::Field(FieldType::Bool)),
        ("i64", Self::Field(FieldType::I64)),
        ("f64", Self::Field(FieldType::F64)),
        ("i64[]", Self::Field(FieldType::I64List)),
        ("f64[]", Self::Field(FieldType::F64List)),
        ("f32[]", Self::Field(FieldType::F32List)),
        ("string[]", Self::Field(FieldType::StringList)),
        ("flatten", Self::Flatten),
    ];

    /// Returns the type with this name.
    ///
    /// # Errors
    ///
    /// Returns the names that exist if it is none of them.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, column_type)| *column_type).ok_or_else(|| {
            let names: Vec<_> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            format!("expected a type: {}; found \"{name}\"", names.join(", "))
        })
    }
}

/// The buffers of conversions.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) converter: Converter,
    text: String,
    f64s: Vec<f64>,
    f32s: Vec<f32>,
    strings: StringListBuf,
}

impl Buffers {
    /// Returns the value of a cell as this type. The cell is not null.
    pub(super) fn convert<'a>(
        &'a mut self,
        cell: Cell<'a>,
        field_type: FieldType,
    ) -> Result<Value<'a>, String> {
        let expected = |found: &str| format!("expected {}, found {found}", field_type.name());
        let value = match cell {
            Cell::Null => return Err(expected("NULL")),
            Cell::Json(text) | Cell::JsonList(text) => return self.parse(text, field_type),
            Cell::Value(value) => value,
        };
        if FieldType::of(value.value_type()).is_none_or(|found| found == field_type) {
            return Ok(value);
        }
        match (value, field_type) {
            (Value::String(text), _) => self.parse(text.as_bytes(), field_type),
            (Value::Bytes(text), _) => self.parse(text, field_type),
            (Value::I64(int), FieldType::F64) if (int as f64) as i128 == i128::from(int) => {
                Ok(Value::F64(int as f64))
            }
            (Value::I64(int @ (0 | 1)), FieldType::Bool) => Ok(Value::Bool(int == 1)),
            (Value::Bool(truth), FieldType::I64) => Ok(Value::I64(i64::from(truth))),
            (Value::F64(float), FieldType::I64)
                if float.fract() == 0.0 && float.abs() < MAX_EXACT =>
            {
                Ok(Value::I64(float as i64))
            }
            (Value::F64List(list), FieldType::F32List) => {
                self.f32s.clear();
                self.f32s.extend(list.iter().map(|float| *float as f32));
                Ok(Value::F32List(&self.f32s))
            }
            (Value::I64List(list), FieldType::F32List) => {
                self.f32s.clear();
                self.f32s.extend(list.iter().map(|int| *int as f32));
                Ok(Value::F32List(&self.f32s))
            }
            (Value::I64List(list), FieldType::F64List) => {
                self.f64s.clear();
                self.f64s.extend(list.iter().map(|int| *int as f64));
                Ok(Value::F64List(&self.f64s))
            }
            (Value::F32List(list), FieldType::F64List) => {
                self.f64s.clear();
                self.f64s.extend(list.iter().map(|float| f64::from(*float)));
                Ok(Value::F64List(&self.f64s))
            }
            (Value::I64List(list), FieldType::StringList) => {
                self.strings.clear();
                for int in list {
                    self.strings.push(&int.to_string());
                }
                Ok(Value::StringList(self.strings.as_list()))
            }
            (value, FieldType::String | FieldType::Bytes) => {
                let found = value.value_type().name();
                let text = plain_text(&value).ok_or_else(|| expected(found))?;
                self.text = text;
                Ok(match field_type {
                    FieldType::String => Value::String(&self.text),
                    _ => Value::Bytes(self.text.as_bytes()),
                })
            }
            (value, _) => Err(expected(value.value_type().name())),
        }
    }

    /// Returns the value of a cell without a named type; `None` for a null.
    pub(super) fn as_it_is<'a>(&'a mut self, cell: Cell<'a>) -> Result<Option<Value<'a>>, String> {
        match cell {
            Cell::Null => Ok(None),
            Cell::Value(value) => Ok(Some(value)),
            Cell::Json(text) => {
                let text = std::str::from_utf8(text);
                text.map(|text| Some(Value::String(text))).map_err(|error| error.to_string())
            }
            Cell::JsonList(text) => self.converter.json(text).map_err(|error| {
                let text = describe(&error);
                format!("{text}; the type string stores the JSON as text")
            }),
        }
    }

    fn parse<'a>(&'a mut self, text: &'a [u8], to: FieldType) -> Result<Value<'a>, String> {
        self.converter.value(text, to).map_err(|error| describe(&error))
    }
}

/// Returns the text of a single value.
fn plain_text(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::I64(int) => int.to_string(),
        Value::F64(float) => float.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => return None,
    })
}

/// Returns what was expected and found in a text, and where.
pub(super) fn describe(error: &TextError) -> String {
    let TextError { column, expected, found, .. } = error;
    match column {
        1 => format!("expected {expected}, found {found}"),
        column => format!("at character {column}: expected {expected}, found {found}"),
    }
}

/// Returns the message for a text that cannot be flattened.
pub(super) fn describe_json(error: &TextError) -> String {
    let TextError { column, found, .. } = error;
    format!("flatten: at character {column}: expected JSON, found {found}")
}

/// Appends the text of a cell to a key.
///
/// # Errors
///
/// Returns what was found if the value cannot be a part of a key.
pub(super) fn push_key_text(cell: Cell<'_>, key: &mut Vec<u8>) -> Result<(), String> {
    match cell {
        Cell::Null => return Err("expected a value for the key, found NULL".to_owned()),
        Cell::Json(text) | Cell::JsonList(text) | Cell::Value(Value::Bytes(text)) => {
            key.extend_from_slice(text);
        }
        Cell::Value(Value::String(text)) => key.extend_from_slice(text.as_bytes()),
        Cell::Value(Value::I64(int)) => {
            key.extend_from_slice(itoa::Buffer::new().format(int).as_bytes());
        }
        Cell::Value(value) => {
            let text = plain_text(&value).ok_or_else(|| {
                let found = value.value_type().name();
                format!("expected text, bytes or a number for the key, found a {found}")
            })?;
            key.extend_from_slice(text.as_bytes());
        }
    }
    Ok(())
}
