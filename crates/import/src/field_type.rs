//! The type of values in TSV, CSV and AxonCache text, which an option sets, and their parsing.

use crate::fault::{Fault, Scan};
use crate::json::{self, Elements, ParsedValue, Scanner, ValueBuffers};
use crate::text::{describe, quote};
use nuthatch_snapshot::ValueType;
use std::fmt;

/// The type of values in a format without types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum FieldType {
    /// The bytes of the text.
    Bytes,
    /// The text, which must be UTF-8.
    #[default]
    String,
    /// `true` or `false`.
    Bool,
    /// A 64-bit integer.
    I64,
    /// A 64-bit float.
    F64,
    /// A list of integers, in JSON.
    #[cfg_attr(feature = "clap", value(name = "i64[]"))]
    I64List,
    /// A list of 64-bit floats, in JSON.
    #[cfg_attr(feature = "clap", value(name = "f64[]"))]
    F64List,
    /// A list of 32-bit floats, in JSON.
    #[cfg_attr(feature = "clap", value(name = "f32[]"))]
    F32List,
    /// A list of strings, in JSON.
    #[cfg_attr(feature = "clap", value(name = "string[]"))]
    StringList,
}

impl FieldType {
    /// Returns the name of the type in options, such as `i64[]`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::I64List => "i64[]",
            Self::F64List => "f64[]",
            Self::F32List => "f32[]",
            Self::StringList => "string[]",
        }
    }

    /// Returns the field type whose text represents values of this stored type. `None` for the
    /// empty list, which is text of every list type.
    pub fn of(stored: ValueType) -> Option<Self> {
        Some(match stored {
            ValueType::Bytes => Self::Bytes,
            ValueType::String => Self::String,
            ValueType::Bool => Self::Bool,
            ValueType::I64 => Self::I64,
            ValueType::F64 => Self::F64,
            ValueType::I64List => Self::I64List,
            ValueType::F64List => Self::F64List,
            ValueType::F32List => Self::F32List,
            ValueType::StringList => Self::StringList,
            // The empty list, and types of later versions.
            _ => return None,
        })
    }

    /// Returns whether text of this field type can represent values of this stored type.
    pub fn can_hold(self, stored: ValueType) -> bool {
        let is_list =
            matches!(self, Self::I64List | Self::F64List | Self::F32List | Self::StringList);
        Self::of(stored).map_or(is_list, |value_type| value_type == self)
    }

    /// Returns whether the empty text is a value of this type.
    pub(crate) fn may_be_empty(self) -> bool {
        matches!(self, Self::Bytes | Self::String)
    }

    /// Parses a value. Faults have the offset in the text.
    pub(crate) fn parse<'t>(
        self,
        text: &'t [u8],
        as_f32: bool,
        buffers: &mut ValueBuffers,
    ) -> Scan<ParsedValue<'t>> {
        match self {
            Self::Bytes => Ok(ParsedValue::Bytes(text)),
            Self::String => utf8(text).map(ParsedValue::String),
            Self::Bool => match text {
                b"true" => Ok(ParsedValue::Bool(true)),
                b"false" => Ok(ParsedValue::Bool(false)),
                _ => Err(Fault::new(0, "true or false", quote(text))),
            },
            Self::I64 => {
                let int = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                let expected = "an integer of at most 64 bits";
                int.map(ParsedValue::I64).ok_or_else(|| Fault::new(0, expected, quote(text)))
            }
            Self::F64 => {
                let expected = "a float: digits, NaN, Infinity, -Infinity or 0x and 16 digits";
                let float = float(text).or_else(|| json::f64_by_name(text)).map(ParsedValue::F64);
                float.ok_or_else(|| Fault::new(0, expected, quote(text)))
            }
            Self::I64List => list(text, Elements::Integers, as_f32, buffers),
            Self::F64List => list(text, Elements::Floats, as_f32, buffers),
            Self::F32List => list(text, Elements::Floats, true, buffers),
            Self::StringList => list(text, Elements::Strings, false, buffers),
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses a finite decimal float. Names such as `nan`, which the float parser accepts, begin with a
/// letter.
fn float(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let is_decimal = digits.first().is_some_and(|first| first.is_ascii_digit() || *first == b'.');
    let value: f64 = is_decimal.then(|| fast_float2::parse(text).ok())??;
    value.is_finite().then_some(value)
}

fn list<'t>(
    text: &[u8],
    elements: Elements,
    as_f32: bool,
    buffers: &mut ValueBuffers,
) -> Scan<ParsedValue<'t>> {
    let mut scanner = Scanner::new(text, 0);
    scanner.skip_blank();
    let value = scanner.list(elements, as_f32, buffers)?;
    scanner.expect_end()?;
    Ok(value)
}

/// Checks that a text is UTF-8.
pub(crate) fn utf8(text: &[u8]) -> Scan<&str> {
    std::str::from_utf8(text).map_err(|e| {
        let at = e.valid_up_to();
        Fault::new(at, "text in UTF-8", describe(text, at))
    })
}
