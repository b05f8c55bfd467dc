//! JSON lists. All elements of a list have one type.

use super::buffers::{ParsedValue, ValueBuffers};
use super::number::{self, F32_OR_NAME, F64_OR_NAME, Number, exact_f64};
use super::scanner::Scanner;
use crate::fault::{Fault, Scan};

/// The expected type of the elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elements {
    /// Any type, determined by the elements: integers, floats if one element is a float, or
    /// strings.
    Any,
    Integers,
    /// Floats, including the names of those that JSON cannot represent.
    Floats,
    Strings,
}

const EXPECTED_CLOSE: &str = "',' or ']' after the element";

impl Elements {
    fn expected(self) -> &'static str {
        match self {
            Self::Any => "a list of integers, of floats or of strings",
            Self::Integers => "an integer",
            Self::Floats => "a number",
            Self::Strings => "a string",
        }
    }
}

impl Scanner<'_> {
    /// Parses a list into `buffers`. With `as_f32`, numbers become 32-bit floats.
    pub(crate) fn list<'s>(
        &mut self,
        elements: Elements,
        as_f32: bool,
        buffers: &mut ValueBuffers,
    ) -> Scan<ParsedValue<'s>> {
        self.expect(b'[', "a list")?;
        self.skip_blank();
        if self.consume(b']') {
            return Ok(ParsedValue::EmptyList);
        }
        let has_strings = self.peek() == Some(b'"') && elements != Elements::Floats;
        let has_numbers = matches!(self.peek(), Some(b'-' | b'0'..=b'9' | b'"')) && !has_strings;
        match elements {
            Elements::Any | Elements::Strings if has_strings => self.strings(buffers),
            Elements::Any | Elements::Integers | Elements::Floats if has_numbers && as_f32 => {
                self.f32s(elements, buffers)
            }
            Elements::Any | Elements::Integers | Elements::Floats if has_numbers => {
                self.numbers(elements, buffers)
            }
            _ => Err(self.fault(elements.expected())),
        }
    }

    fn strings<'s>(&mut self, buffers: &mut ValueBuffers) -> Scan<ParsedValue<'s>> {
        buffers.strings.clear();
        let mut len = 0;
        loop {
            let at = self.at;
            let text = match self.string(&mut buffers.text, "a string, as the first element is")? {
                Some(text) => text,
                None => &buffers.text,
            };
            len += text.len();
            if u32::try_from(len).is_err() {
                return Err(Fault::new(at, "a list of strings of at most 4 GiB", "more"));
            }
            buffers.strings.push(text);
            if !self.next_element(b']', EXPECTED_CLOSE)? {
                return Ok(ParsedValue::StringList);
            }
        }
    }

    fn numbers<'s>(
        &mut self,
        elements: Elements,
        buffers: &mut ValueBuffers,
    ) -> Scan<ParsedValue<'s>> {
        buffers.i64s.clear();
        buffers.f64s.clear();
        let mut is_float = elements == Elements::Floats;
        // The offset of the first integer that is not exact as a float.
        let mut inexact = None;
        loop {
            let at = self.at;
            if elements == Elements::Floats && self.peek() == Some(b'"') {
                let float =
                    self.quoted_float(&mut buffers.text, number::f64_by_name, F64_OR_NAME)?;
                buffers.f64s.push(float);
            } else {
                match self.number("a number, as the first element is")? {
                    Number::Int(int) if is_float => {
                        buffers.f64s.push(exact_f64(int).ok_or_else(|| self.inexact_fault(at))?);
                    }
                    Number::Int(int) => {
                        if inexact.is_none() && exact_f64(int).is_none() {
                            inexact = Some(at);
                        }
                        buffers.i64s.push(int);
                    }
                    Number::Float(_) if elements == Elements::Integers => {
                        return Err(self.fault_at(at, "an integer"));
                    }
                    Number::Float(float) => {
                        // With the first float, the integers before it become floats.
                        if let Some(at) = inexact {
                            return Err(self.inexact_fault(at));
                        }
                        is_float = true;
                        buffers.f64s.extend(buffers.i64s.drain(..).map(|int| int as f64));
                        buffers.f64s.push(float);
                    }
                }
            }
            if !self.next_element(b']', EXPECTED_CLOSE)? {
                return Ok(if is_float { ParsedValue::F64List } else { ParsedValue::I64List });
            }
        }
    }

    fn f32s<'s>(
        &mut self,
        elements: Elements,
        buffers: &mut ValueBuffers,
    ) -> Scan<ParsedValue<'s>> {
        buffers.f32s.clear();
        loop {
            let at = self.at;
            let float = if elements == Elements::Floats && self.peek() == Some(b'"') {
                self.quoted_float(&mut buffers.text, number::f32_by_name, F32_OR_NAME)?
            } else {
                let text = self.number_text("a number, as the first element is")?;
                if elements == Elements::Integers && text.is_float() {
                    return Err(self.fault_at(at, "an integer"));
                }
                text.to_f32()?
            };
            buffers.f32s.push(float);
            if !self.next_element(b']', EXPECTED_CLOSE)? {
                return Ok(ParsedValue::F32List);
            }
        }
    }

    /// Parses a string with a float that JSON cannot represent.
    pub(crate) fn quoted_float<F>(
        &mut self,
        unescaped: &mut String,
        by_name: fn(&[u8]) -> Option<F>,
        expected: &'static str,
    ) -> Scan<F> {
        let at = self.at;
        let text = match self.string(unescaped, expected)? {
            Some(text) => text,
            None => unescaped,
        };
        by_name(text.as_bytes()).ok_or_else(|| Fault::new(at, expected, format!("\"{text}\"")))
    }

    #[cold]
    fn inexact_fault(&self, at: usize) -> Fault {
        self.fault_at(at, "an integer that a 64-bit float holds exactly, in a list of floats")
    }
}
