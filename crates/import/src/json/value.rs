//! JSON values of the types that snapshots store.

use super::buffers::{ParsedValue, ValueBuffers};
use super::list::Elements;
use super::number::{self, F64_OR_NAME, Number, exact_f64};
use super::scanner::Scanner;
use crate::fault::{Fault, Scan};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const VALUE: &str = "a string, a number, true, false, a list, or an object such as \
                     {\"$bytes\": \"base64\"}";
const TAG: &str = "one of \"$bytes\", \"$f64\" and \"$f32\"";

impl<'t> Scanner<'t> {
    /// Parses a value. With `as_f32`, lists of numbers become lists of 32-bit floats.
    #[inline]
    pub(crate) fn value(
        &mut self,
        as_f32: bool,
        buffers: &mut ValueBuffers,
    ) -> Scan<ParsedValue<'t>> {
        match self.peek() {
            Some(b'"') => Ok(self
                .string(&mut buffers.text, VALUE)?
                .map_or(ParsedValue::BufferedString, ParsedValue::String)),
            Some(b'-' | b'0'..=b'9') => Ok(match self.number(VALUE)? {
                Number::Int(int) => ParsedValue::I64(int),
                Number::Float(float) => ParsedValue::F64(float),
            }),
            Some(b'[') => self.list(Elements::Any, as_f32, buffers),
            Some(b'{') => self.tagged(as_f32, buffers),
            Some(b't') if self.consume_bytes(b"true") => Ok(ParsedValue::Bool(true)),
            Some(b'f') if self.consume_bytes(b"false") => Ok(ParsedValue::Bool(false)),
            _ => Err(self.fault(VALUE)),
        }
    }

    /// Parses an object whose only field has the name of a type.
    fn tagged(&mut self, as_f32: bool, buffers: &mut ValueBuffers) -> Scan<ParsedValue<'t>> {
        let start = self.at;
        self.at += 1;
        self.skip_blank();
        let name_at = self.at;
        let name = match self.string(&mut buffers.text, TAG)? {
            Some(name) => name,
            None => &buffers.text,
        };
        let read = match name {
            "$bytes" => Self::tagged_base64,
            "$f64" => Self::tagged_f64,
            "$f32" => Self::tagged_f32,
            name => return Err(Fault::new(name_at, TAG, format!("\"{name}\""))),
        };
        self.skip_blank();
        self.expect(b':', "':' after the field name")?;
        self.skip_blank();
        let value = read(self, as_f32, buffers)?;
        self.skip_blank();
        if self.peek() == Some(b',') {
            return Err(Fault::new(start, VALUE, "an object of several fields"));
        }
        self.expect(b'}', "'}' after the value")?;
        Ok(value)
    }

    fn tagged_base64(
        &mut self,
        _as_f32: bool,
        buffers: &mut ValueBuffers,
    ) -> Scan<ParsedValue<'t>> {
        self.base64(&mut buffers.text, &mut buffers.bytes)?;
        Ok(ParsedValue::BufferedBytes)
    }

    /// Parses a string of base64 and decodes it into `bytes`.
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

    /// Parses `{"$bytes": "base64"}` into `bytes`.
    pub(crate) fn tagged_bytes(&mut self, unescaped: &mut String, bytes: &mut Vec<u8>) -> Scan<()> {
        const EXPECTED: &str = "a string or {\"$bytes\": \"base64\"}";
        self.expect(b'{', EXPECTED)?;
        self.skip_blank();
        let name_at = self.at;
        let name = match self.string(unescaped, "\"$bytes\"")? {
            Some(name) => name,
            None => unescaped,
        };
        if name != "$bytes" {
            return Err(Fault::new(name_at, "\"$bytes\"", format!("\"{name}\"")));
        }
        self.skip_blank();
        self.expect(b':', "':' after the field name")?;
        self.skip_blank();
        self.base64(unescaped, bytes)?;
        self.skip_blank();
        self.expect(b'}', "'}' after the value")
    }

    fn tagged_f64(&mut self, as_f32: bool, buffers: &mut ValueBuffers) -> Scan<ParsedValue<'t>> {
        let at = self.at;
        match self.peek() {
            Some(b'[') => self.list(Elements::Floats, as_f32, buffers),
            Some(b'"') => Ok(ParsedValue::F64(self.quoted_float(
                &mut buffers.text,
                number::f64_by_name,
                F64_OR_NAME,
            )?)),
            _ => match self.number(F64_OR_NAME)? {
                Number::Float(float) => Ok(ParsedValue::F64(float)),
                Number::Int(int) => exact_f64(int).map(ParsedValue::F64).ok_or_else(|| {
                    self.fault_at(at, "an integer that a 64-bit float holds exactly")
                }),
            },
        }
    }

    fn tagged_f32(&mut self, _as_f32: bool, buffers: &mut ValueBuffers) -> Scan<ParsedValue<'t>> {
        self.list(Elements::Floats, true, buffers)
    }
}
