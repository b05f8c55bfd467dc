//! Entries from rows: keys by a template, values from columns.

use super::cell::{Cell, CellBuffers, Literal, Row};
use super::conversion::{self, ColumnType, push_key_text};
use super::template::{KeyTemplate, Segment};
use nuthatch_import::{RowError, RowSink};
use nuthatch_snapshot::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What becomes of a value that is NULL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nulls {
    /// There is no entry.
    #[default]
    Absent,
    /// There is an entry with an empty string.
    Empty,
    /// The job fails.
    Error,
}

/// A part of a key.
#[derive(Clone, Debug)]
enum Part {
    Text(Vec<u8>),
    /// The value of the column at this index.
    Column(usize),
}

/// A column whose values become entries.
#[derive(Clone, Debug)]
struct ValueColumn {
    index: usize,
    name: String,
    column_type: Option<ColumnType>,
    /// The parts of the key from the first name of a column, with the name of this column.
    key_end: Vec<Part>,
}

/// How rows with certain columns become entries.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The parts of the key before the first name of a column.
    key_start: Vec<Part>,
    /// The columns whose values the key contains.
    key_columns: Vec<usize>,
    values: Vec<ValueColumn>,
    /// The names of all columns, for messages.
    names: Vec<String>,
    nulls: Nulls,
}

impl Mapping {
    /// Returns the mapping for rows with these columns. `values` are the names of the columns with
    /// values; if it is empty, all columns have values that are not a part of the key.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found if a column does not exist or exists twice, or if
    /// several columns would have the same key.
    pub fn new(
        names: &[String],
        template: &KeyTemplate,
        values: &[String],
        types: &BTreeMap<String, ColumnType>,
        nulls: Nulls,
    ) -> Result<Self, String> {
        let common = template.0.iter().position(|segment| matches!(segment, Segment::Name));
        let (start, end) = template.0.split_at(common.unwrap_or(template.0.len()));
        let key_columns =
            template.columns().map(|name| find(names, name)).collect::<Result<_, _>>()?;
        for name in types.keys() {
            find(names, name)?;
        }
        let in_key: Vec<&str> = template.columns().collect();
        let with_values: Vec<&String> = match values {
            [] => names.iter().filter(|name| !in_key.contains(&name.as_str())).collect(),
            values => values.iter().collect(),
        };
        let mut columns = Vec::new();
        for name in with_values {
            let (index, column_type) = (find(names, name)?, types.get(name).copied());
            let key_end = parts(end, names, name)?;
            columns.push(ValueColumn { index, name: name.clone(), column_type, key_end });
        }
        let list = |columns: &[ValueColumn]| {
            columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        match &columns[..] {
            [] => {
                return Err(format!(
                    "expected a column with values besides those of the key, found only {}; name \
                     one by \"values\"",
                    in_key.join(", ")
                ));
            }
            [_, _, ..] if !template.has_name() => {
                return Err(format!(
                    "expected {{column}} in the key, since several columns have values: {}; or \
                     one of them in \"values\"",
                    list(&columns)
                ));
            }
            _ => {}
        }
        let key_start = parts(start, names, "")?;
        Ok(Self { key_start, key_columns, values: columns, names: names.to_vec(), nulls })
    }

    /// Returns the values of a row that its key contains; `None` if a query cannot compare one.
    pub fn key_literals(&self, row: &dyn Row, cells: &mut CellBuffers) -> Option<Vec<Literal>> {
        self.key_columns.iter().map(|column| row.cell(*column, cells).ok()?.literal()).collect()
    }
}

/// Returns the parts of the keys of a column with values. Neighbouring texts are one part.
fn parts(segments: &[Segment], names: &[String], column: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for segment in segments {
        let text = match segment {
            Segment::Text(text) => text,
            Segment::Name => column,
            Segment::Column(name) => {
                parts.push(Part::Column(find(names, name)?));
                continue;
            }
        };
        match parts.last_mut() {
            Some(Part::Text(before)) => before.extend_from_slice(text.as_bytes()),
            _ => parts.push(Part::Text(text.as_bytes().to_vec())),
        }
    }
    Ok(parts)
}

/// Returns the index of the only column with a name.
fn find(names: &[String], name: &str) -> Result<usize, String> {
    let mut found = names.iter().enumerate().filter(|(_, other)| *other == name);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (Some(_), Some(_)) => Err(format!("expected one column \"{name}\", found several")),
        (None, _) => {
            let names: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
            Err(format!("expected a column \"{name}\", found {}", names.join(", ")))
        }
    }
}

/// The reason why a row has no entries.
#[derive(Debug)]
pub enum RowFault {
    /// What was expected and found, with the name of the column.
    Row(String),
    /// The receiver of entries failed.
    Sink(nuthatch_snapshot::Error),
}

/// Makes entries from rows, on one thread.
#[derive(Debug)]
pub struct Mapper {
    mapping: Arc<Mapping>,
    key: Vec<u8>,
    cells: CellBuffers,
    conversions: conversion::Buffers,
}

impl Mapper {
    /// Returns a mapper.
    pub fn new(mapping: Arc<Mapping>) -> Self {
        Self {
            mapping,
            key: Vec::new(),
            cells: CellBuffers::default(),
            conversions: conversion::Buffers::default(),
        }
    }

    /// Returns the mapping.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Passes the entries of a row to the sink. `number` is the number of the row.
    ///
    /// # Errors
    ///
    /// Returns [`RowFault::Row`] if a value cannot be stored, or [`RowFault::Sink`] if the sink
    /// fails.
    pub fn add<S: RowSink>(
        &mut self,
        number: u64,
        row: &dyn Row,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let Self { mapping, key, cells, conversions } = self;
        let mapping = &**mapping;
        key.clear();
        push_parts(mapping, &mapping.key_start, row, (cells, key))?;
        let common_len = key.len();
        for column in &mapping.values {
            key.truncate(common_len);
            push_parts(mapping, &column.key_end, row, (cells, key))?;
            let fault = |message: String| in_column(&column.name, &message);
            let cell = row.cell(column.index, cells).map_err(fault)?;
            if matches!(cell, Cell::Null) {
                match mapping.nulls {
                    Nulls::Absent => sink.absent(key),
                    Nulls::Empty => sink.row(number, key, Value::String("")).map_err(sink_fault)?,
                    Nulls::Error => {
                        let message = "expected a value, found NULL (nulls = \"error\")";
                        return Err(fault(message.to_owned()));
                    }
                }
                continue;
            }
            let value = match (column.column_type, cell) {
                (Some(ColumnType::Flatten), cell) => {
                    let text =
                        json_text(cell).map_err(|found| fault(format!("flatten: {found}")))?;
                    let flattened = conversions.converter.flatten((number, key), text, sink);
                    flattened.map_err(|error| match error {
                        RowError::Text(error) => fault(conversion::describe_json(&error)),
                        RowError::Sink(error) => sink_fault(error),
                    })?;
                    continue;
                }
                (Some(ColumnType::Field(to)), cell) => {
                    conversions.convert(cell, to).map_err(fault)?
                }
                (None, cell) => match conversions.as_it_is(cell).map_err(fault)? {
                    Some(value) => value,
                    None => continue,
                },
            };
            sink.row(number, key, value).map_err(sink_fault)?;
        }
        Ok(())
    }
}

/// Appends parts of a key.
#[inline]
fn push_parts(
    mapping: &Mapping,
    parts: &[Part],
    row: &dyn Row,
    (cells, key): (&mut CellBuffers, &mut Vec<u8>),
) -> Result<(), RowFault> {
    for part in parts {
        match part {
            Part::Text(text) => key.extend_from_slice(text),
            Part::Column(index) => {
                let pushed = row.cell(*index, cells).and_then(|cell| push_key_text(cell, key));
                pushed.map_err(|message| in_column(&mapping.names[*index], &message))?;
            }
        }
    }
    Ok(())
}

/// Returns the JSON text of a cell.
fn json_text(cell: Cell<'_>) -> Result<&[u8], String> {
    match cell {
        Cell::Json(text) | Cell::JsonList(text) | Cell::Value(Value::Bytes(text)) => Ok(text),
        Cell::Value(Value::String(text)) => Ok(text.as_bytes()),
        Cell::Null => Err("expected JSON, found NULL".to_owned()),
        Cell::Value(value) => Err(format!("expected JSON, found {}", value.value_type().name())),
    }
}

#[cold]
fn in_column(name: &str, message: &str) -> RowFault {
    RowFault::Row(format!("column \"{name}\": {message}"))
}

#[cold]
fn sink_fault(error: nuthatch_snapshot::Error) -> RowFault {
    RowFault::Sink(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Texts(Vec<Option<&'static str>>);

    impl Row for Texts {
        fn cell<'r>(
            &'r self,
            column: usize,
            _buffers: &'r mut CellBuffers,
        ) -> Result<Cell<'r>, String> {
            Ok(self.0[column].map_or(Cell::Null, |text| Cell::Value(Value::String(text))))
        }
    }

    #[derive(Default)]
    struct Pairs(Vec<String>);

    impl RowSink for Pairs {
        fn row(
            &mut self,
            _line: u64,
            key: &[u8],
            value: Value<'_>,
        ) -> Result<(), nuthatch_snapshot::Error> {
            self.0.push(format!("{}={value:?}", String::from_utf8_lossy(key)));
            Ok(())
        }
    }

    fn mapping(key: &str, values: &[&str], types: &[(&str, &str)]) -> Result<Mapping, String> {
        let names = ["id", "name", "tags"].map(str::to_owned);
        let values: Vec<_> = values.iter().map(|&name| name.to_owned()).collect();
        let parse = |name| ColumnType::parse(name).expect("a type");
        let types = types.iter().map(|(column, name)| ((*column).to_owned(), parse(name)));
        let template = KeyTemplate::parse(key)?;
        Mapping::new(&names, &template, &values, &types.collect(), Nulls::Absent)
    }

    fn entries(mapping: Mapping, row: [Option<&'static str>; 3]) -> Result<Vec<String>, RowFault> {
        let mut pairs = Pairs::default();
        Mapper::new(Arc::new(mapping)).add(1, &Texts(row.to_vec()), &mut pairs)?;
        Ok(pairs.0)
    }

    #[test]
    fn each_column_becomes_an_entry() {
        let types = [("tags", "i64[]"), ("id", "i64")];
        let made = mapping("user:{id}.{column}", &[], &types).expect("a mapping");
        let row = [Some("7"), Some("Ada"), Some("[1,2]")];
        let expected = ["user:7.name=String(\"Ada\")", "user:7.tags=I64List([1, 2])"];
        assert_eq!(entries(made, row).expect("entries"), expected);
    }

    #[test]
    fn json_is_flattened_and_null_is_absent() {
        let made = mapping("{id}:{column}", &[], &[("tags", "flatten")]).expect("a mapping");
        let row = [Some("7"), None, Some("{\"a\":{\"b\":true}}")];
        assert_eq!(entries(made, row).expect("entries"), ["7:tags.a.b=Bool(true)"]);
    }

    #[test]
    fn faults_name_the_column() {
        let made = mapping("{id}", &["name"], &[("name", "f64")]).expect("a mapping");
        let fault = entries(made.clone(), [Some("7"), Some("x"), None]).expect_err("no float");
        assert!(
            format!("{fault:?}").contains("column \\\"name\\\": expected a float"),
            "{fault:?}"
        );
        let fault = entries(made, [None, Some("1"), None]).expect_err("no key");
        assert!(format!("{fault:?}").contains("column \\\"id\\\""), "{fault:?}");
    }

    #[test]
    fn templates_and_columns_must_agree() {
        for (key, values, expected) in [
            ("{x}", &[][..], "expected a column \"x\", found \"id\", \"name\", \"tags\""),
            ("{id}", &[], "expected {column} in the key"),
            ("{id}{name}{tags}", &[], "expected a column with values"),
            ("{id}", &["y"], "expected a column \"y\""),
        ] {
            let error = mapping(key, values, &[]).expect_err(key);
            assert!(error.contains(expected), "{error}");
        }
    }
}
