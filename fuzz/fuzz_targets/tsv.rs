//! Parses arbitrary bytes as TSV with values of one type, which the first byte selects. The parsed
//! rows survive round trips through TSV and JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_cli::output::{tsv_escape, tsv_value};
use nuthatch_fuzz::JsonRows;
use nuthatch_import::{FieldType, RowSink, parse_tsv};
use nuthatch_snapshot::{Error, Value};

const TYPES: [FieldType; 9] = [
    FieldType::String,
    FieldType::Bytes,
    FieldType::Bool,
    FieldType::I64,
    FieldType::F64,
    FieldType::I64List,
    FieldType::F64List,
    FieldType::F32List,
    FieldType::StringList,
];

#[derive(Default)]
struct TsvRows {
    lines: Vec<u8>,
    field: Vec<u8>,
    json: JsonRows,
}

impl RowSink for TsvRows {
    fn row(&mut self, line: u64, key: &[u8], value: Value<'_>) -> Result<(), Error> {
        tsv_escape(key, &mut self.lines);
        self.lines.push(b'\t');
        self.field.clear();
        tsv_value(&value, &mut self.field);
        tsv_escape(&self.field, &mut self.lines);
        self.lines.push(b'\n');
        self.json.row(line, key, value)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, lines)) = bytes.split_first() else { return };
    let value_type = TYPES[usize::from(*choice) % TYPES.len()];
    let mut rows = TsvRows::default();
    // The rows before an error are checked too.
    let _ = parse_tsv(lines, value_type, &mut rows);
    rows.json.check();
    let mut again = TsvRows::default();
    let read = parse_tsv(&rows.lines, value_type, &mut again);
    assert!(read.is_ok(), "{}: {read:?}", rows.lines.escape_ascii());
    assert!(rows.lines == again.lines, "{}", again.lines.escape_ascii());
    assert!(rows.json.lines == again.json.lines, "{}", again.json.lines.escape_ascii());
});
