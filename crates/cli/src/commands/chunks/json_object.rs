//! Answers as JSON objects, one on a line.

use nuthatch_cli::output::json_string;
use std::fmt::Display;

/// An object that is being written.
pub(super) struct Json(Vec<u8>);

impl Json {
    pub(super) fn new() -> Self {
        Self(vec![b'{'])
    }

    /// A field with a text.
    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        json_string(value, &mut self.0);
        self
    }

    /// A field with what is written in JSON as it is displayed: a number, a truth, another object.
    pub(super) fn plain(mut self, name: &str, value: impl Display) -> Self {
        self.name(name);
        self.0.extend(value.to_string().bytes());
        self
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        json_string(name, &mut self.0);
        self.0.push(b':');
    }

    /// The object.
    pub(super) fn end(mut self) -> String {
        self.0.push(b'}');
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The object as a line.
    pub(super) fn line(self) -> String {
        self.end() + "\n"
    }
}
