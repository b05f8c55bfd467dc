//! JSON lists, whose elements are all of one type.

use super::number::{self, Number, SPECIAL_DOUBLE, SPECIAL_SINGLE};
use super::value::{Room, Shape};
use super::{Scanner, number::exact};
use crate::error::{Fault, Scan};

/// What the elements of a list may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elements {
    /// What the list itself says: integers, floats if one of them is, or strings.
    Any,
    Ints,
    /// Floats, also those that JSON cannot hold.
    Floats,
    Strings,
}

const CLOSE: &str = "',' or ']' after the element";

impl Elements {
    fn expected(self) -> &'static str {
        match self {
            Self::Any => "a list of integers, of floats or of strings",
            Self::Ints => "an integer",
            Self::Floats => "a number",
            Self::Strings => "a string",
        }
    }
}

impl Scanner<'_> {
    /// A list, left in `room`; numbers become 32-bit floats if `singles` says so.
    pub(crate) fn list<'s>(
        &mut self,
        elements: Elements,
        singles: bool,
        room: &mut Room,
    ) -> Scan<Shape<'s>> {
        self.expect(b'[', "a list")?;
        self.blank();
        if self.take(b']') {
            return Ok(Shape::EmptyList);
        }
        let strings = self.peek() == Some(b'"') && elements != Elements::Floats;
        let numbers = matches!(self.peek(), Some(b'-' | b'0'..=b'9' | b'"')) && !strings;
        match elements {
            Elements::Any | Elements::Strings if strings => self.strings(room),
            Elements::Any | Elements::Ints | Elements::Floats if numbers && singles => {
                self.singles(elements, room)
            }
            Elements::Any | Elements::Ints | Elements::Floats if numbers => {
                self.numbers(elements, room)
            }
            _ => Err(self.fault(elements.expected())),
        }
    }

    fn strings<'s>(&mut self, room: &mut Room) -> Scan<Shape<'s>> {
        room.strings.clear();
        let mut len = 0;
        loop {
            let at = self.at;
            let text = match self.string(&mut room.text, "a string, as the first element is")? {
                Some(text) => text,
                None => &room.text,
            };
            len += text.len();
            if u32::try_from(len).is_err() {
                return Err(Fault::new(at, "a list of strings of at most 4 GiB", "more"));
            }
            room.strings.push(text);
            if !self.another(b']', CLOSE)? {
                return Ok(Shape::StringList);
            }
        }
    }

    fn numbers<'s>(&mut self, elements: Elements, room: &mut Room) -> Scan<Shape<'s>> {
        room.ints.clear();
        room.doubles.clear();
        let mut floats = elements == Elements::Floats;
        let mut inexact = None;
        loop {
            let at = self.at;
            if elements == Elements::Floats && self.peek() == Some(b'"') {
                let float = self.special(&mut room.text, number::double, SPECIAL_DOUBLE)?;
                room.doubles.push(float);
            } else {
                match self.number("a number, as the first element is")? {
                    Number::Int(int) if floats => {
                        room.doubles.push(exact(int).ok_or_else(|| self.inexact(at))?);
                    }
                    Number::Int(int) => {
                        if inexact.is_none() && exact(int).is_none() {
                            inexact = Some(at);
                        }
                        room.ints.push(int);
                    }
                    Number::Float(_) if elements == Elements::Ints => {
                        return Err(self.fault_at(at, "an integer"));
                    }
                    Number::Float(float) => {
                        // The first float makes floats of the integers before it.
                        if let Some(at) = inexact {
                            return Err(self.inexact(at));
                        }
                        floats = true;
                        room.doubles.extend(room.ints.drain(..).map(|int| int as f64));
                        room.doubles.push(float);
                    }
                }
            }
            if !self.another(b']', CLOSE)? {
                return Ok(if floats { Shape::F64List } else { Shape::I64List });
            }
        }
    }

    fn singles<'s>(&mut self, elements: Elements, room: &mut Room) -> Scan<Shape<'s>> {
        room.singles.clear();
        loop {
            let at = self.at;
            let single = if elements == Elements::Floats && self.peek() == Some(b'"') {
                self.special(&mut room.text, number::single, SPECIAL_SINGLE)?
            } else {
                let text = self.number_text("a number, as the first element is")?;
                if elements == Elements::Ints && text.is_float() {
                    return Err(self.fault_at(at, "an integer"));
                }
                text.single()?
            };
            room.singles.push(single);
            if !self.another(b']', CLOSE)? {
                return Ok(Shape::F32List);
            }
        }
    }

    /// A float that stands as a string because JSON cannot hold it.
    pub(crate) fn special<F>(
        &mut self,
        unescaped: &mut String,
        read: fn(&[u8]) -> Option<F>,
        expected: &'static str,
    ) -> Scan<F> {
        let at = self.at;
        let text = match self.string(unescaped, expected)? {
            Some(text) => text,
            None => unescaped,
        };
        read(text.as_bytes()).ok_or_else(|| Fault::new(at, expected, format!("\"{text}\"")))
    }

    #[cold]
    fn inexact(&self, at: usize) -> Fault {
        self.fault_at(at, "an integer that a 64-bit float holds exactly, in a list of floats")
    }
}
