//! The terminal in the mode of `nuthatch top`.

use super::line::{Line, Style};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Color, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use std::io::{self, Write, stdout};
use std::panic;

/// The alternate screen of the terminal. Dropping it restores the terminal, and so does a panic.
pub(crate) struct Screen(());

impl Screen {
    /// Switches standard output to the alternate screen.
    pub(crate) fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // Dropping the screen restores the terminal if a later step fails.
        let screen = Self(());
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            // Restored first, so that the message is visible.
            leave();
            hook(what);
        }));
        Ok(screen)
    }

    /// Draws lines that fit the terminal, which has this many rows.
    #[expect(
        clippy::unused_self,
        reason = "a `Screen` exists only while this program has the terminal"
    )]
    pub(crate) fn show(&self, lines: &[Line], height: u16) -> io::Result<()> {
        let mut out = stdout().lock();
        draw(&mut out, lines, height)?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn leave() {
    // An error means that the terminal is closed.
    let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Draws lines over the previous ones.
fn draw(out: &mut impl Write, lines: &[Line], height: u16) -> io::Result<()> {
    for (row, line) in (0..height).zip(lines) {
        let text = &line.text;
        queue!(out, MoveTo(0, row))?;
        match line.style {
            Style::Plain => queue!(out, Print(text))?,
            Style::Title | Style::Head => {
                queue!(out, SetAttribute(Attribute::Bold), Print(text))?;
            }
            Style::Alarm => queue!(out, SetForegroundColor(Color::Red), Print(text))?,
        }
        let plain = SetAttribute(Attribute::Reset);
        queue!(out, plain, SetForegroundColor(Color::Reset), Clear(ClearType::UntilNewLine))?;
    }
    if lines.len() < usize::from(height) {
        queue!(out, MoveTo(0, lines.len() as u16), Clear(ClearType::FromCursorDown))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previous_content_is_cleared() {
        let lines = [Style::Title, Style::Alarm].map(|style| Line { text: "a".to_owned(), style });
        for (height, below) in [(24, 1), (2, 0)] {
            let mut out = Vec::new();
            draw(&mut out, &lines, height).expect("drawn");
            let drawn = String::from_utf8(out).expect("a text");
            // Behind each line, and below the last one.
            let count = |command| drawn.matches(command).count();
            assert_eq!((count("\u{1b}[K"), count("\u{1b}[J")), (2, below), "{height}");
        }
    }
}
