//! The question before a change.

use crate::outcome::Failure;
use std::io::{IsTerminal, Write, stderr, stdin};

/// Returns whether a question can be asked.
pub(super) fn can_ask() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Waits for the answer of a user on a terminal, whether to continue. Without a terminal, the
/// answer is yes.
///
/// # Errors
///
/// Fails if the user does not confirm.
pub(super) fn confirm() -> Result<(), Failure> {
    if !can_ask() {
        return Ok(());
    }
    // If the question cannot be shown, reading the answer fails.
    let _ = write!(stderr(), "Continue? [y/N] ");
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::Error("nothing was changed".to_owned()))
}
