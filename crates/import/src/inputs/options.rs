//! How inputs become rows, and which options fit which formats.

use super::columns::Choice;
use super::csv;
use super::error::Error;
use super::open::{Format, Place};
use super::patterns::{Pattern, Singles};
use super::typed::Type;
use std::path::Path;

/// How inputs become rows.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The format of all inputs; without it each file's name tells.
    pub format: Option<Format>,
    /// The type of values in formats that have no types.
    pub value_type: Option<Type>,
    /// The column with the keys.
    pub key: Option<String>,
    /// The column with the values; without it every other column has some.
    pub value: Option<String>,
    /// Types of single columns.
    pub columns: Vec<(String, Type)>,
    /// Keys whose lists of numbers are stored as 32-bit floats.
    pub singles: Vec<Pattern>,
}

impl Options {
    /// The format of an input.
    pub(crate) fn format_of(&self, path: &Path, place: &Place) -> Result<Format, Error> {
        let told = self.format.or(Format::of(path).0);
        match told {
            Some(format) => Ok(format),
            None if place.is_stdin() => Ok(Format::Jsonl),
            None => Err(Error::Usage(format!(
                "{}: the name tells no format; give one with --format",
                place.name
            ))),
        }
    }

    /// Fails when options contradict the formats: an option that does nothing is a mistake.
    pub(crate) fn fit(&self, formats: &[Format]) -> Result<(), Error> {
        let used_by = |users: &[Format]| formats.iter().any(|format| users.contains(format));
        let tables = [Format::Csv, Format::Parquet];
        if let (None, Some(table)) = (&self.key, formats.iter().find(|f| tables.contains(f))) {
            let name = table.name();
            return Err(Error::Usage(format!(
                "{name} input needs --key, the column with the keys"
            )));
        }
        let untyped = [Format::Tsv, Format::Csv, Format::Dta];
        for (option, given, users) in [
            ("--key", self.key.is_some(), &tables[..]),
            ("--value", self.value.is_some(), &tables),
            ("--type", self.value_type.is_some(), &untyped),
            ("--column", !self.columns.is_empty(), &[Format::Csv]),
        ] {
            if given && !used_by(users) {
                let users: Vec<_> = users.iter().map(|format| format.name()).collect();
                return Err(Error::Usage(format!(
                    "{option} is for {} input, and there is none",
                    users.join(" or ")
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn value_type(&self) -> Type {
        self.value_type.unwrap_or_default()
    }

    pub(crate) fn singles(&self) -> Singles {
        Singles(self.singles.clone())
    }

    pub(crate) fn choice(&self) -> Choice {
        Choice { key: self.key.clone().unwrap_or_default(), value: self.value.clone() }
    }

    pub(crate) fn csv(&self) -> csv::Options {
        csv::Options {
            columns: self.choice(),
            value_type: self.value_type(),
            column_types: self.columns.clone(),
            singles: self.singles(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_do_nothing_are_mistakes() {
        let key = || Some("id".to_owned());
        let typed = Options { value_type: Some(Type::I64), ..Options::default() };
        let keyed = Options { key: key(), ..Options::default() };
        for (options, formats, message) in [
            (&typed, &[Format::Jsonl][..], "--type is for TSV or CSV or AxonCache text input"),
            (&typed, &[Format::Csv], "CSV input needs --key"),
            (&keyed, &[Format::Jsonl, Format::Tsv], "--key is for CSV or Parquet input"),
        ] {
            let error = options.fit(formats).expect_err(message).to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(typed.fit(&[Format::Jsonl, Format::Tsv]).is_ok());
        assert!(keyed.fit(&[Format::Parquet]).is_ok());
    }
}
