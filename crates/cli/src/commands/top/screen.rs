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

    /// Draws lines.
    #[expect(
        clippy::unused_self,
        reason = "a `Screen` exists only while this program has the terminal"
    )]
    pub(crate) fn show(&self, lines: &[Line], size: (u16, u16)) -> io::Result<()> {
        let mut out = stdout().lock();
        draw(&mut out, lines, size)?;
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

/// Draws lines over the previous ones. If they do not fit, the last row has the number of the rest.
fn draw(out: &mut impl Write, lines: &[Line], (width, height): (u16, u16)) -> io::Result<()> {
    let (width, height) = (usize::from(width), usize::from(height));
    let fitting = if lines.len() > height { height.saturating_sub(1) } else { lines.len() };
    for (row, line) in lines.iter().take(fitting).enumerate() {
        let text: String = line.text.chars().take(width).collect();
        queue!(out, MoveTo(0, row as u16))?;
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
    if fitting < lines.len() && height > 0 {
        let text: String =
            format!("... {} more lines", lines.len() - fitting).chars().take(width).collect();
        queue!(out, MoveTo(0, fitting as u16), Print(text), Clear(ClearType::UntilNewLine))?;
    } else if fitting < height {
        queue!(out, MoveTo(0, fitting as u16), Clear(ClearType::FromCursorDown))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws a number of lines on a terminal of this size. Returns the output.
    fn drawn(count: usize, size: (u16, u16)) -> String {
        let styles = [Style::Title, Style::Plain, Style::Alarm, Style::Head];
        let lines: Vec<_> = (0..count)
            .map(|at| Line { text: format!("line {at} is long"), style: styles[at % 4] })
            .collect();
        let mut out = Vec::new();
        draw(&mut out, &lines, size).expect("drawn");
        String::from_utf8(out).expect("a text")
    }

    /// Returns the text of each row.
    fn rows(drawn: &str) -> Vec<String> {
        let mut rows = vec![String::new(); 30];
        let mut row = 0;
        for part in drawn.split('\u{1b}').skip(1) {
            let end = part.find(|c: char| c.is_ascii_alphabetic()).expect("a command") + 1;
            let (command, text) = part.split_at(end);
            if let Some(position) = command.strip_suffix('H') {
                let position = position.trim_start_matches('[').split(';').next().expect("a row");
                row = position.parse::<usize>().expect("a row") - 1;
            }
            rows[row].push_str(text);
        }
        rows
    }

    #[test]
    fn lines_are_cut_at_the_edges() {
        assert_eq!(rows(&drawn(3, (6, 10)))[..4], ["line 0", "line 1", "line 2", ""]);
        let rows = rows(&drawn(10, (20, 4)));
        assert_eq!(rows[2..5], ["line 2 is long", "... 7 more lines", ""]);
        for (width, height) in [(0, 0), (1, 1), (0, 5), (5, 0), (300, 300)] {
            drawn(5, (width, height));
        }
    }

    #[test]
    fn previous_content_is_cleared() {
        // Behind each line, and below the last one.
        let drawn = drawn(2, (80, 24));
        assert_eq!((drawn.matches("\u{1b}[K").count(), drawn.matches("\u{1b}[J").count()), (2, 1));
    }
}
