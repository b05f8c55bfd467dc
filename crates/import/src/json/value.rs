//! JSON values, and where they are held while their row is parsed.

use super::list::Elements;
use super::number::{self, Number, SPECIAL_DOUBLE};
use super::{Scanner, number::exact};
use crate::error::{Fault, Scan};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuthatch_snapshot::{StringListBuf, Value};

/// Room for values that are not in the text as they are. One for each thread serves all rows.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) text: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) ints: Vec<i64>,
    pub(crate) doubles: Vec<f64>,
    pub(crate) singles: Vec<f32>,
    pub(crate) strings: StringListBuf,
}

/// A value that is parsed: here, in the text, or in the [`Room`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'t> {
    /// Bytes of the text.
    Bytes(&'t [u8]),
    /// Bytes in the room.
    RoomBytes,
    /// A string of the text.
    Text(&'t str),
    /// A string in the room.
    RoomText,
    Bool(bool),
    I64(i64),
    F64(f64),
    I64List,
    F64List,
    F32List,
    StringList,
    EmptyList,
}

impl Room {
    #[inline]
    pub(crate) fn value<'a>(&'a mut self, shape: Shape<'a>) -> Value<'a> {
        match shape {
            Shape::Bytes(bytes) => Value::Bytes(bytes),
            Shape::RoomBytes => Value::Bytes(&self.bytes),
            Shape::Text(text) => Value::String(text),
            Shape::RoomText => Value::String(&self.text),
            Shape::Bool(truth) => Value::Bool(truth),
            Shape::I64(int) => Value::I64(int),
            Shape::F64(float) => Value::F64(float),
            Shape::I64List => Value::I64List(&self.ints),
            Shape::F64List => Value::F64List(&self.doubles),
            Shape::F32List => Value::F32List(&self.singles),
            Shape::StringList => Value::StringList(self.strings.as_list()),
            Shape::EmptyList => Value::EmptyList,
        }
    }
}

const VALUE: &str = "a string, a number, true, false, a list, or an object such as \
                     {\"$bytes\": \"base64\"}";
const TAG: &str = "one of \"$bytes\", \"$f64\" and \"$f32\"";

impl<'t> Scanner<'t> {
    /// A value. Lists of numbers become lists of 32-bit floats if `singles` says so.
    #[inline]
    pub(crate) fn value(&mut self, singles: bool, room: &mut Room) -> Scan<Shape<'t>> {
        match self.peek() {
            Some(b'"') => {
                Ok(self.string(&mut room.text, VALUE)?.map_or(Shape::RoomText, Shape::Text))
            }
            Some(b'-' | b'0'..=b'9') => Ok(match self.number(VALUE)? {
                Number::Int(int) => Shape::I64(int),
                Number::Float(float) => Shape::F64(float),
            }),
            Some(b'[') => self.list(Elements::Any, singles, room),
            Some(b'{') => self.tagged(singles, room),
            Some(b't') if self.word(b"true") => Ok(Shape::Bool(true)),
            Some(b'f') if self.word(b"false") => Ok(Shape::Bool(false)),
            _ => Err(self.fault(VALUE)),
        }
    }

    /// An object whose only field says what its value is.
    fn tagged(&mut self, singles: bool, room: &mut Room) -> Scan<Shape<'t>> {
        let start = self.at;
        self.at += 1;
        self.blank();
        let name_at = self.at;
        let name = match self.string(&mut room.text, TAG)? {
            Some(name) => name,
            None => &room.text,
        };
        let read = match name {
            "$bytes" => Self::base64_shape,
            "$f64" => Self::doubles,
            "$f32" => Self::singles_list,
            name => return Err(Fault::new(name_at, TAG, format!("\"{name}\""))),
        };
        self.blank();
        self.expect(b':', "':' after the field name")?;
        self.blank();
        let shape = read(self, singles, room)?;
        self.blank();
        if self.peek() == Some(b',') {
            return Err(Fault::new(start, VALUE, "an object of several fields"));
        }
        self.expect(b'}', "'}' after the value")?;
        Ok(shape)
    }

    fn base64_shape(&mut self, _singles: bool, room: &mut Room) -> Scan<Shape<'t>> {
        self.base64(&mut room.text, &mut room.bytes)?;
        Ok(Shape::RoomBytes)
    }

    /// A string of base64, decoded into `bytes`.
    fn base64(&mut self, unescaped: &mut String, bytes: &mut Vec<u8>) -> Scan<()> {
        const EXPECTED: &str = "a string of base64 with padding";
        let at = self.at;
        let text = match self.string(unescaped, EXPECTED)? {
            Some(text) => text,
            None => unescaped,
        };
        bytes.clear();
        STANDARD.decode_vec(text, bytes).map_err(|e| Fault::new(at, EXPECTED, e.to_string()))
    }

    /// `{"$bytes": "base64"}`, which begins here.
    pub(crate) fn tagged_bytes(&mut self, unescaped: &mut String, bytes: &mut Vec<u8>) -> Scan<()> {
        const EXPECTED: &str = "a string or {\"$bytes\": \"base64\"}";
        self.expect(b'{', EXPECTED)?;
        self.blank();
        let name_at = self.at;
        let name = match self.string(unescaped, "\"$bytes\"")? {
            Some(name) => name,
            None => unescaped,
        };
        if name != "$bytes" {
            return Err(Fault::new(name_at, "\"$bytes\"", format!("\"{name}\"")));
        }
        self.blank();
        self.expect(b':', "':' after the field name")?;
        self.blank();
        self.base64(unescaped, bytes)?;
        self.blank();
        self.expect(b'}', "'}' after the value")
    }

    fn doubles(&mut self, singles: bool, room: &mut Room) -> Scan<Shape<'t>> {
        let at = self.at;
        match self.peek() {
            Some(b'[') => self.list(Elements::Floats, singles, room),
            Some(b'"') => {
                Ok(Shape::F64(self.special(&mut room.text, number::double, SPECIAL_DOUBLE)?))
            }
            _ => match self.number(SPECIAL_DOUBLE)? {
                Number::Float(float) => Ok(Shape::F64(float)),
                Number::Int(int) => exact(int).map(Shape::F64).ok_or_else(|| {
                    self.fault_at(at, "an integer that a 64-bit float holds exactly")
                }),
            },
        }
    }

    fn singles_list(&mut self, _singles: bool, room: &mut Room) -> Scan<Shape<'t>> {
        self.list(Elements::Floats, true, room)
    }
}
