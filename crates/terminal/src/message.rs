//! Messages for users.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a message to standard error, after the name of the program. A message that cannot be
/// written is dropped.
pub fn print_message(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "nuthatch: {message}");
}
