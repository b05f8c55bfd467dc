//! Output as JSON objects, one per line.

use nuthatch_cli::output::json_string;
use std::fmt::Display;

/// A JSON object under construction.
pub(crate) struct JsonObject(Vec<u8>);

impl JsonObject {
    pub(crate) fn new() -> Self {
        Self(vec![b'{'])
    }

    /// Appends a field with a string.
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        json_string(value, &mut self.0);
        self
    }

    /// Appends a field whose display is JSON: a number, a boolean, another object.
    pub(crate) fn plain(mut self, name: &str, value: impl Display) -> Self {
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

    /// Returns the object.
    pub(crate) fn end(mut self) -> String {
        self.0.push(b'}');
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// Returns the object as a line.
    pub(crate) fn line(self) -> String {
        self.end() + "\n"
    }
}
