//! Values whose type is told by an option, because their format has none.

use super::error::{Fault, Scan};
use super::json::{self, Elements, Room, Scanner, Shape};
use super::rows::describe;
use clap::ValueEnum;
use nuthatch_snapshot::ValueType;
use std::fmt;

/// The type of values given as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Type {
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
    #[value(name = "i64[]")]
    I64List,
    /// A list of 64-bit floats, in JSON.
    #[value(name = "f64[]")]
    F64List,
    /// A list of 32-bit floats, in JSON.
    #[value(name = "f32[]")]
    F32List,
    /// A list of strings, in JSON.
    #[value(name = "string[]")]
    StringList,
}

impl Type {
    /// What options call the type.
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

    /// The type that reads a value of this stored type; `None` for the empty list, which every
    /// list type reads.
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
            ValueType::EmptyList => return None,
        })
    }

    /// Whether TSV of this type holds values of this stored type.
    pub fn reads(self, stored: ValueType) -> bool {
        let is_list =
            matches!(self, Self::I64List | Self::F64List | Self::F32List | Self::StringList);
        Self::of(stored).map_or(is_list, |value_type| value_type == self)
    }

    /// Whether an empty text is a value of this type.
    pub(crate) fn may_be_empty(self) -> bool {
        matches!(self, Self::Bytes | Self::String)
    }

    /// The value that this text is. Faults tell the offset in the text.
    pub(crate) fn shape<'t>(
        self,
        text: &'t [u8],
        singles: bool,
        room: &mut Room,
    ) -> Scan<Shape<'t>> {
        match self {
            Self::Bytes => Ok(Shape::Bytes(text)),
            Self::String => utf8(text).map(Shape::Text),
            Self::Bool => match text {
                b"true" => Ok(Shape::Bool(true)),
                b"false" => Ok(Shape::Bool(false)),
                _ => Err(Fault::new(0, "true or false", quote(text))),
            },
            Self::I64 => {
                let int = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                let expected = "an integer of at most 64 bits";
                int.map(Shape::I64).ok_or_else(|| Fault::new(0, expected, quote(text)))
            }
            Self::F64 => {
                let expected = "a float: digits, NaN, Infinity, -Infinity or 0x and 16 digits";
                let float = float(text).or_else(|| json::double(text)).map(Shape::F64);
                float.ok_or_else(|| Fault::new(0, expected, quote(text)))
            }
            Self::I64List => list(text, Elements::Ints, singles, room),
            Self::F64List => list(text, Elements::Floats, singles, room),
            Self::F32List => list(text, Elements::Floats, true, room),
            Self::StringList => list(text, Elements::Strings, false, room),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A finite float in decimal. Names such as `nan`, which the float parser would take, begin with
/// a letter.
fn float(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let decimal = digits.first().is_some_and(|first| first.is_ascii_digit() || *first == b'.');
    let value: f64 = decimal.then(|| fast_float2::parse(text).ok())??;
    value.is_finite().then_some(value)
}

fn list<'t>(text: &[u8], elements: Elements, singles: bool, room: &mut Room) -> Scan<Shape<'t>> {
    let mut scanner = Scanner::new(text, 0);
    scanner.blank();
    let shape = scanner.list(elements, singles, room)?;
    scanner.end()?;
    Ok(shape)
}

/// The text as UTF-8.
pub(crate) fn utf8(text: &[u8]) -> Scan<&str> {
    std::str::from_utf8(text).map_err(|e| {
        let at = e.valid_up_to();
        Fault::new(at, "text in UTF-8", describe(text, at))
    })
}

/// A short text as it stands, for people.
#[cold]
pub(crate) fn quote(text: &[u8]) -> String {
    const MOST: usize = 40;
    let cut = if text.len() > MOST { "…" } else { "" };
    format!("\"{}{cut}\"", text[..text.len().min(MOST)].escape_ascii())
}
