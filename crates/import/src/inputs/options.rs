//! The options of reading, and which formats they are for.

use super::file::InputFile;
use super::format::Format;
use crate::error::Error;
use crate::field_type::FieldType;
use crate::formats::columns::ColumnNames;
use crate::formats::{csv, jsonl};
use crate::pattern::{F32Keys, Pattern};
use std::path::Path;

/// Options that determine the rows of inputs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The format of all inputs. By default the extension of each file determines it; standard
    /// input is JSON lines.
    pub format: Option<Format>,
    /// The type of values in TSV, CSV and AxonCache text. By default strings.
    pub value_type: Option<FieldType>,
    /// The column with the keys, which CSV and Parquet require, or the field with the keys of JSON
    /// objects of any shape.
    pub key: Option<String>,
    /// The column or field with the values; the key of a row is then that of `key` alone. By
    /// default, all but that of the key have values, and the key of a value is `KEY.COLUMN`.
    pub value: Option<String>,
    /// The byte between the fields of CSV, a comma by default. It must be ASCII, and neither a
    /// quote nor a line end.
    pub delimiter: Option<u8>,
    /// The names of the columns of CSV without a header. By default the first line is the header.
    pub header: Option<Vec<String>>,
    /// The types of CSV columns that differ from `value_type`, by name.
    pub columns: Vec<(String, FieldType)>,
    /// Patterns of the keys whose lists of numbers are stored as 32-bit floats. None by default.
    pub f32_keys: Vec<Pattern>,
}

impl Options {
    /// Returns the format of an input.
    pub(crate) fn format_of(&self, path: &Path, file: &InputFile) -> Result<Format, Error> {
        match self.format.or(Format::of(path).0) {
            Some(format) => Ok(format),
            None if file.is_stdin() => Ok(Format::Jsonl),
            None => Err(Error::Usage(format!(
                "{}: expected an extension of a known format, found another; set --format",
                file.name
            ))),
        }
    }

    /// Fails if options contradict the formats. An option without effect is a mistake, too.
    pub(crate) fn check(&self, formats: &[Format]) -> Result<(), Error> {
        let used_by = |users: &[Format]| formats.iter().any(|format| users.contains(format));
        let tables = [Format::Csv, Format::Parquet];
        let keyed = [Format::Csv, Format::Parquet, Format::Jsonl, Format::Json];
        if let (None, Some(table)) = (&self.key, formats.iter().find(|f| tables.contains(f))) {
            let name = table.name();
            return Err(Error::Usage(format!(
                "{name} input needs --key, the column with the keys"
            )));
        }
        if self.value.is_some() && self.key.is_none() && used_by(&keyed) {
            let expected = "--value needs --key, the field with the keys".to_owned();
            return Err(Error::Usage(expected));
        }
        let untyped = [Format::Tsv, Format::Csv, Format::Dta];
        for (option, is_set, users) in [
            ("--key", self.key.is_some(), &keyed[..]),
            ("--value", self.value.is_some(), &keyed),
            ("--delimiter", self.delimiter.is_some(), &[Format::Csv]),
            ("--header", self.header.is_some(), &[Format::Csv]),
            ("--type", self.value_type.is_some(), &untyped),
            ("--column", !self.columns.is_empty(), &[Format::Csv]),
        ] {
            if is_set && !used_by(users) {
                let users: Vec<_> = users.iter().map(|format| format.name()).collect();
                return Err(Error::Usage(format!(
                    "{option} is for {} input, and there is none",
                    users.join(" or ")
                )));
            }
        }
        Ok(())
    }

    /// Returns the type of values, or the default.
    pub(crate) fn value_type(&self) -> FieldType {
        self.value_type.unwrap_or_default()
    }

    /// Returns the keys whose lists are stored as 32-bit floats.
    pub(crate) fn f32_keys(&self) -> F32Keys {
        F32Keys(self.f32_keys.clone())
    }

    /// Returns the names of the columns.
    pub(crate) fn column_names(&self) -> ColumnNames {
        ColumnNames { key: self.key.clone().unwrap_or_default(), value: self.value.clone() }
    }

    /// Returns the parser of rows in JSON.
    pub(crate) fn jsonl(&self) -> jsonl::Parser {
        let fields = self.key.is_some().then(|| self.column_names());
        jsonl::Parser { f32_keys: self.f32_keys(), fields }
    }

    /// Returns the options of the CSV parser.
    pub(crate) fn csv(&self) -> csv::Options {
        csv::Options {
            columns: self.column_names(),
            delimiter: self.delimiter.map(csv::Delimiter).unwrap_or_default(),
            value_type: self.value_type(),
            column_types: self.columns.clone(),
            f32_keys: self.f32_keys(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_effect_are_errors() {
        let key = || Some("id".to_owned());
        let typed = Options { value_type: Some(FieldType::I64), ..Options::default() };
        let keyed = Options { key: key(), ..Options::default() };
        let valued = Options { value: key(), ..Options::default() };
        let split = Options { delimiter: Some(b';'), ..Options::default() };
        let headed = Options { header: Some(Vec::new()), ..Options::default() };
        for (options, formats, message) in [
            (&typed, &[Format::Jsonl][..], "--type is for TSV or CSV or AxonCache text input"),
            (&typed, &[Format::Csv], "CSV input needs --key"),
            (&keyed, &[Format::Tsv], "--key is for CSV or Parquet or JSON lines or JSON input"),
            (&valued, &[Format::Jsonl], "--value needs --key, the field with the keys"),
            (&split, &[Format::Tsv, Format::Jsonl], "--delimiter is for CSV input"),
            (&headed, &[Format::Jsonl], "--header is for CSV input"),
        ] {
            let error = options.check(formats).expect_err(message).to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(typed.check(&[Format::Jsonl, Format::Tsv]).is_ok());
        assert!(keyed.check(&[Format::Parquet]).is_ok());
    }
}
