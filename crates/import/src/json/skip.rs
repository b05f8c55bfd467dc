//! JSON values of any shape that are not stored.

use super::scanner::Scanner;
use crate::fault::Scan;

/// Maximum number of lists and objects within each other.
pub(crate) const MAX_DEPTH: usize = 64;

const ANY_VALUE: &str = "a JSON value";

impl Scanner<'_> {
    /// Moves past a value of any shape. `depth` is the number of lists and objects around it, and
    /// `unescaped` a buffer.
    pub(crate) fn skip_value(&mut self, depth: usize, unescaped: &mut String) -> Scan<()> {
        match self.peek() {
            Some(b'"') => self.string(unescaped, ANY_VALUE).map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number_text(ANY_VALUE).map(|_| ()),
            Some(b'[' | b'{') if depth == MAX_DEPTH => Err(self.too_deep()),
            Some(b'[') => self.skip_list(depth + 1, unescaped),
            Some(b'{') => self.skip_object(depth + 1, unescaped),
            _ if self.consume_bytes(b"null") => Ok(()),
            _ if self.consume_bytes(b"true") || self.consume_bytes(b"false") => Ok(()),
            _ => Err(self.fault(ANY_VALUE)),
        }
    }

    fn skip_list(&mut self, depth: usize, unescaped: &mut String) -> Scan<()> {
        self.expect(b'[', "a list")?;
        self.skip_blank();
        if self.consume(b']') {
            return Ok(());
        }
        loop {
            self.skip_value(depth, unescaped)?;
            if !self.next_element(b']', "',' or ']' after the element")? {
                return Ok(());
            }
        }
    }

    fn skip_object(&mut self, depth: usize, unescaped: &mut String) -> Scan<()> {
        self.expect(b'{', "an object")?;
        self.skip_blank();
        if self.consume(b'}') {
            return Ok(());
        }
        loop {
            self.string(unescaped, "a field name")?;
            self.skip_blank();
            self.expect(b':', "':' after the field name")?;
            self.skip_blank();
            self.skip_value(depth, unescaped)?;
            if !self.next_element(b'}', "',' or '}' after the field")? {
                return Ok(());
            }
        }
    }

    /// Returns the fault for a list or an object that is nested too deep.
    #[cold]
    pub(crate) fn too_deep(&self) -> crate::fault::Fault {
        self.fault("at most 64 lists and objects within each other")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_shape_are_skipped() {
        let depth = |depth| "[".repeat(depth) + "1" + &"]".repeat(depth);
        for (text, rest) in [
            ("null,", ","),
            ("{\"a\": [1, {\"b\": null}, \"]\"], \"c\": {}}}", "}"),
            ("[[], [[true, -1.5e3]]] ", " "),
            (&depth(64), ""),
        ] {
            let mut scanner = Scanner::new(text.as_bytes(), 0);
            scanner.skip_value(0, &mut String::new()).expect(text);
            assert_eq!(&text[scanner.at..], rest);
        }
        for text in ["", "nul", "[1,]", "{\"a\"}", "{a:1}", "[1 2]", "\"a", "01", &depth(65)] {
            let scanned = Scanner::new(text.as_bytes(), 0).skip_value(0, &mut String::new());
            assert!(scanned.is_err(), "{text}");
        }
    }
}
