//! Single values from text: of a type, or of JSON.

use crate::error::{RowError, TextError};
use crate::fault::Fault;
use crate::field_type::FieldType;
use crate::formats::fields::{self, Rows};
use crate::json::{Scanner, ValueBuffers};
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use nuthatch_snapshot::Value;

/// Converts single texts to values. Keeps buffers, which all conversions reuse.
#[derive(Debug, Default)]
pub struct Converter {
    value: ValueBuffers,
    fields: fields::Buffers,
    no_keys: F32Keys,
}

impl Converter {
    /// Returns the value of a text of this type.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found, on line 1, if the text is not of this type.
    pub fn value<'a>(
        &'a mut self,
        text: &'a [u8],
        field_type: FieldType,
    ) -> Result<Value<'a>, Box<TextError>> {
        let parsed = field_type.parse(text, false, &mut self.value);
        parsed.map(|parsed| self.value.value(parsed)).map_err(|fault| invalid(text, fault))
    }

    /// Returns the value of a JSON text: a string, number, boolean or list, or an object such as
    /// `{"$bytes": "base64"}`. `None` for `null`.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found, on line 1, if the text is not JSON of such a value.
    pub fn json<'a>(&'a mut self, json: &'a [u8]) -> Result<Option<Value<'a>>, Box<TextError>> {
        let mut scanner = Scanner::new(json, 0);
        scanner.skip_blank();
        let parsed = if scanner.consume_bytes(b"null") {
            Ok(None)
        } else {
            scanner.value(false, &mut self.value).map(Some)
        };
        let parsed = parsed.and_then(|parsed| scanner.expect_end().map(|()| parsed));
        match parsed {
            Ok(parsed) => Ok(parsed.map(|parsed| self.value.value(parsed))),
            Err(fault) => Err(invalid(json, fault)),
        }
    }

    /// Adds the value of a JSON text under a key, or the values of an object under
    /// `<key>.<field>`, also of objects within objects. `null` has no value.
    ///
    /// # Errors
    ///
    /// Returns [`RowError::Text`] if the text is not JSON of such values, and [`RowError::Sink`] if
    /// the sink fails.
    pub fn flatten<S: RowSink>(
        &mut self,
        (line, key): (u64, &[u8]),
        json: &[u8],
        sink: &mut S,
    ) -> Result<(), RowError> {
        let mut scanner = Scanner::new(json, 0);
        scanner.skip_blank();
        self.fields.set_key(key);
        let mut rows = Rows { sink, line, key_at: 0, f32_keys: &self.no_keys };
        fields::add(&mut scanner, 0, &mut self.fields, &mut rows).map_err(|fault| match fault {
            crate::fault::RowFault::Text(fault) => RowError::Text(invalid(json, fault)),
            crate::fault::RowFault::Sink(error) => RowError::Sink(error),
        })?;
        scanner.expect_end().map_err(|fault| RowError::Text(invalid(json, fault)))
    }
}

/// Returns the error for a fault in a text of one value. Its column is the character in the text.
#[expect(clippy::unnecessary_box_returns, reason = "errors of text are boxed everywhere")]
fn invalid(text: &[u8], fault: Fault) -> Box<TextError> {
    let before = &text[..fault.at().min(text.len())];
    let column = before.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64 + 1;
    match fault.into_error(1, column) {
        RowError::Text(error) => error,
        RowError::Sink(_) => unreachable!("a fault of a text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_snapshot::Error;

    #[derive(Default)]
    struct Pairs(Vec<String>);

    impl RowSink for Pairs {
        fn row(&mut self, _line: u64, key: &[u8], value: Value<'_>) -> Result<(), Error> {
            self.0.push(format!("{}={value:?}", String::from_utf8_lossy(key)));
            Ok(())
        }
    }

    #[test]
    fn texts_are_converted_to_values_of_a_type() {
        let mut converter = Converter::default();
        assert_eq!(converter.value(b"7", FieldType::I64), Ok(Value::I64(7)));
        let list = converter.value(b"[1, 2.5]", FieldType::F32List);
        assert_eq!(list, Ok(Value::F32List(&[1.0, 2.5])));
        let error = converter.value(b"[1, x]", FieldType::I64List).expect_err("not a number");
        assert_eq!((error.line, error.column), (1, 5));
    }

    #[test]
    fn json_is_converted_to_one_value() {
        let mut converter = Converter::default();
        assert_eq!(converter.json(b" \"a\\n\" "), Ok(Some(Value::String("a\n"))));
        assert_eq!(converter.json(b"null"), Ok(None));
        assert!(converter.json(b"1 2").is_err());
        assert!(converter.json(b"").is_err());
    }

    #[test]
    fn objects_are_flattened() {
        let (mut converter, mut pairs) = (Converter::default(), Pairs::default());
        let json = b"{\"a\": 1, \"b\": {\"c\": [1, 2], \"d\": null}}";
        converter.flatten((1, b"k"), json, &mut pairs).expect("JSON");
        assert_eq!(pairs.0, ["k.a=I64(1)", "k.b.c=I64List([1, 2])"]);
        let error = converter.flatten((1, b"k"), b"{\"a\": 1} 2", &mut pairs);
        assert!(matches!(error, Err(RowError::Text(_))));
    }
}
