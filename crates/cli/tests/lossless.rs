//! Rows that `output` writes are read back exactly.

use nuthatch_cli::output::{json_row, raw_value, tsv_escape, tsv_value};
use nuthatch_import::{FieldType, RowSink, parse_jsonl, parse_tsv};
use nuthatch_snapshot::{OwnedValue, StringListBuf, Value, ValueType};
use proptest::prelude::*;

/// Generates floats of all kinds, by their bits, including NaNs with any payload.
fn doubles() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        any::<i16>().prop_map(f64::from),
        prop::sample::select(vec![f64::NAN, -f64::NAN, f64::INFINITY, -0.0, f64::MIN_POSITIVE]),
    ]
}

fn singles() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        any::<i8>().prop_map(f32::from),
        prop::sample::select(vec![f32::NAN, f32::NEG_INFINITY, -0.0, f32::MAX]),
    ]
}

fn string_list(list: &[String]) -> OwnedValue {
    OwnedValue::StringList(list.iter().collect::<StringListBuf>().as_list().into())
}

fn owned() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(OwnedValue::Bytes),
        any::<String>().prop_map(OwnedValue::String),
        any::<bool>().prop_map(OwnedValue::Bool),
        any::<i64>().prop_map(OwnedValue::I64),
        doubles().prop_map(OwnedValue::F64),
        prop::collection::vec(any::<i64>(), 0..5).prop_map(OwnedValue::I64List),
        prop::collection::vec(doubles(), 0..5).prop_map(OwnedValue::F64List),
        prop::collection::vec(singles(), 0..5).prop_map(OwnedValue::F32List),
        prop::collection::vec(any::<String>(), 0..5).prop_map(|list| string_list(&list)),
    ]
}

/// A sink that keeps the key, the type and the bytes of each value.
#[derive(Debug, Default, PartialEq)]
struct Exact(Vec<(Vec<u8>, ValueType, Vec<u8>)>);

impl RowSink for Exact {
    fn row(
        &mut self,
        _line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        let mut bytes = Vec::new();
        raw_value(&value, &mut bytes);
        self.0.push((key.to_vec(), value.value_type(), bytes));
        Ok(())
    }
}

proptest! {
    #[test]
    fn json_lines_are_lossless(key in any::<Vec<u8>>(), value in owned()) {
        let (mut text, mut given, mut found) = (Vec::new(), Exact::default(), Exact::default());
        json_row(&key, &value.as_value(), &mut text);
        given.row(1, &key, value.as_value()).expect("a sink that takes all");
        if let Err(error) = parse_jsonl(&text, &mut found) {
            panic!("{}: {error}", text.escape_ascii());
        }
        prop_assert_eq!(found, given);
    }

    #[test]
    fn tsv_is_lossless(key in any::<Vec<u8>>(), value in owned()) {
        let (mut text, mut given, mut found) = (Vec::new(), Exact::default(), Exact::default());
        let value = value.as_value();
        tsv_escape(&key, &mut text);
        text.push(b'\t');
        let mut field = Vec::new();
        tsv_value(&value, &mut field);
        tsv_escape(&field, &mut text);
        let value_type = FieldType::of(value.value_type()).unwrap_or(FieldType::I64List);
        given.row(1, &key, value).expect("a sink that takes all");
        if let Err(error) = parse_tsv(&text, value_type, &mut found) {
            panic!("{}: {error}", text.escape_ascii());
        }
        prop_assert_eq!(found, given);
    }
}
