//! Any bytes are rows or an error, and JSON is accepted and rejected as by `serde_json`.

use nuthatch_import::{FieldType, RowSink, parse_csv, parse_dta, parse_jsonl, parse_tsv};
use nuthatch_snapshot::{Value, ValueType};
use proptest::prelude::*;

/// A sink that keeps the type of each value, and the bytes of strings and single numbers.
#[derive(Debug, Default)]
struct Values(Vec<(ValueType, Vec<u8>)>);

impl RowSink for Values {
    fn row(
        &mut self,
        _line: u64,
        _key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        let bytes = match value {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::I64(int) => int.to_le_bytes().to_vec(),
            Value::F64(float) => float.to_le_bytes().to_vec(),
            _ => Vec::new(),
        };
        self.0.push((value.value_type(), bytes));
        Ok(())
    }
}

proptest! {
    /// No bytes make a parser panic.
    #[test]
    fn any_bytes_are_rows_or_an_error(
        bytes in any::<Vec<u8>>(),
        text in "[{}\\[\\]\",:\\\\ \t\n=|\u{1}\u{1e}0-9a-zA-Z$é.+-]{0,60}"
    ) {
        for bytes in [&bytes, text.as_bytes()] {
            let mut found = Values::default();
            let _ = parse_jsonl(bytes, &mut found);
            let row = [b"{\"key\":\"\",\"value\":", bytes].concat();
            let _ = parse_jsonl(&row, &mut found);
            let _ = parse_csv(&[b"a,b\n", bytes].concat(), "a", &mut found);
            let _ = parse_dta(bytes, &mut found);
            for value_type in [
                FieldType::Bytes,
                FieldType::I64,
                FieldType::F64,
                FieldType::F32List,
                FieldType::StringList,
            ] {
                let _ = parse_tsv(bytes, value_type, &mut found);
                let _ = parse_tsv(&[b"\t", bytes].concat(), value_type, &mut found);
            }
        }
    }

    /// What our parser accepts is JSON, and strings and numbers are those that `serde_json`
    /// returns.
    #[test]
    fn accepted_values_are_json(
        text in "[0-9.eE+\\-]{1,8}|\"[a\\\\u0dD8cC9eé/nb]{0,16}\"|[\\[\\],01 .\"]{1,12}"
    ) {
        let row = format!("{{\"key\":\"\",\"value\":{text}}}");
        let mut found = Values::default();
        let ours = parse_jsonl(row.as_bytes(), &mut found);
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match (ours, theirs) {
            (Ok(()), Ok(theirs)) => check_same(&found, &theirs)?,
            (Ok(()), Err(error)) => prop_assert!(false, "{} is no JSON: {}", text, error),
            (Err(error), Ok(theirs)) => {
                prop_assert!(theirs.is_array() || theirs.is_u64(), "{} is JSON: {}", text, error);
            }
            (Err(_), Err(_)) => {}
        }
    }
}

/// Checks that a row has the value that `serde_json` returned.
fn check_same(found: &Values, theirs: &serde_json::Value) -> Result<(), TestCaseError> {
    let [(value_type, bytes)] = &found.0[..] else {
        return Err(TestCaseError::fail("expected one row"));
    };
    match theirs {
        serde_json::Value::String(text) => prop_assert_eq!(&bytes[..], text.as_bytes()),
        serde_json::Value::Number(number) if *value_type == ValueType::I64 => {
            // serde_json has no integer -0.
            let number = number.as_i64().or((number.as_f64() == Some(0.0)).then_some(0));
            prop_assert_eq!(Some(bytes.clone()), number.map(|n| n.to_le_bytes().to_vec()));
        }
        serde_json::Value::Number(number) => {
            let number = number.as_f64();
            prop_assert_eq!(Some(bytes.clone()), number.map(|n| n.to_le_bytes().to_vec()));
        }
        _ => {}
    }
    Ok(())
}
