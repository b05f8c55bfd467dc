//! The part of a text that a terminal shows.

use super::line::{Line, Style};
use crossterm::event::KeyCode;

/// The columns by which the keys for left and right move the text.
const COLUMNS: usize = 10;

/// The place of a screen in its text.
#[derive(Debug, Default)]
pub(super) struct Scroll {
    /// Lines and columns before the first ones that are shown.
    top: usize,
    left: usize,
    /// Lines that the last window showed.
    page: usize,
}

impl Scroll {
    /// Moves the screen if this key does that. Returns whether it does.
    pub(super) fn follow(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Down => self.top = self.top.saturating_add(1),
            KeyCode::Up => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top = self.top.saturating_add(self.page),
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.page),
            KeyCode::Home => (self.top, self.left) = (0, 0),
            KeyCode::End => self.top = usize::MAX,
            KeyCode::Right => self.left = self.left.saturating_add(COLUMNS),
            KeyCode::Left => self.left = self.left.saturating_sub(COLUMNS),
            _ => return false,
        }
        true
    }

    /// Returns the lines that fit a terminal of this width and height, cut at its edges. The first
    /// `fixed` lines are always shown. If there are others that do not fit, the last line has their
    /// numbers.
    pub(super) fn window(
        &mut self,
        mut lines: Vec<Line>,
        fixed: usize,
        (width, height): (usize, usize),
    ) -> Vec<Line> {
        let longest = lines.iter().skip(fixed).map(|line| line.text.chars().count()).max();
        self.left = self.left.min(longest.unwrap_or(0).saturating_sub(width));
        let mut body = lines.split_off(fixed.min(lines.len()));
        let room = height.saturating_sub(lines.len());
        if body.len() <= room {
            (self.top, self.page) = (0, room);
            lines.extend(body.drain(..).map(|line| line.shifted(self.left)));
        } else {
            self.page = room.saturating_sub(1);
            self.top = self.top.min(body.len() - self.page);
            let (first, last, all) = (self.top + 1, self.top + self.page, body.len());
            let shown = body.drain(self.top..last);
            lines.extend(shown.map(|line| line.shifted(self.left)));
            let text = format!("lines {first}-{last} of {all}; PgDn, arrows: more");
            lines.push(Line { text, style: Style::Head });
        }
        lines.truncate(height);
        lines.into_iter().map(|line| line.cut(width)).collect()
    }
}

impl Line {
    /// Returns the line without its first columns.
    fn shifted(self, columns: usize) -> Self {
        if columns == 0 || self.text.is_empty() {
            return self;
        }
        let rest = self.text.chars().skip(columns + 1);
        Self { text: std::iter::once('\u{2026}').chain(rest).collect(), ..self }
    }

    /// Returns the line with at most this many columns. An ellipsis is in place of the rest.
    fn cut(mut self, width: usize) -> Self {
        if self.text.chars().count() > width {
            self.text = self.text.chars().take(width.saturating_sub(1)).collect();
            self.text.extend((width > 0).then_some('\u{2026}'));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    const SIZE: (usize, usize) = (40, 10);

    fn title() -> Line {
        Line { text: "title".to_owned(), style: Style::Title }
    }

    /// Returns the text of the window over the report of the tests, on a terminal of 40 x 10.
    fn shown(scroll: &mut Scroll) -> Vec<String> {
        let lines = std::iter::once(title()).chain(report().lines()).collect();
        let window = scroll.window(lines, 1, SIZE);
        let texts: Vec<_> = window.into_iter().map(|line| line.text).collect();
        assert_eq!(texts.len(), SIZE.1, "{texts:?}");
        assert!(texts.iter().all(|text| text.chars().count() <= SIZE.0), "{texts:?}");
        assert_eq!(texts[0], "title");
        texts
    }

    #[test]
    fn all_lines_of_a_report_can_be_reached_on_a_small_terminal() {
        let mut scroll = Scroll::default();
        let first = shown(&mut scroll);
        assert_eq!(first[9], "lines 1-8 of 13; PgDn, arrows: more");
        assert!(first[2].ends_with('\u{2026}'), "a cut line has a mark: {first:?}");
        assert!(scroll.follow(KeyCode::PageDown));
        let last = shown(&mut scroll);
        assert_eq!(last[9], "lines 6-13 of 13; PgDn, arrows: more");
        assert!(last[8].starts_with("private values are hidden"), "{last:?}");
        for (key, top) in [(KeyCode::Up, 4), (KeyCode::Home, 0), (KeyCode::End, 5)] {
            assert!(scroll.follow(key));
            shown(&mut scroll);
            assert_eq!(scroll.top, top, "{key:?}");
        }
        assert!(!scroll.follow(KeyCode::Char('x')));
    }

    #[test]
    fn columns_beyond_the_edge_can_be_reached() {
        let mut scroll = Scroll::default();
        shown(&mut scroll);
        for _ in 0..20 {
            scroll.follow(KeyCode::Right);
            shown(&mut scroll);
        }
        let right = shown(&mut scroll);
        assert!(right[3].starts_with('\u{2026}') && !right[3].ends_with('\u{2026}'), "{right:?}");
        assert!(right[7].contains("client"), "{right:?}");
        scroll.follow(KeyCode::Home);
        assert!(shown(&mut scroll)[3].starts_with("key"));
    }

    #[test]
    fn a_terminal_of_any_size_has_a_window() {
        for size in [(0, 0), (1, 1), (0, 5), (5, 0), (5, 2), (300, 300)] {
            let lines = std::iter::once(title()).chain(report().lines()).collect();
            let window = Scroll::default().window(lines, 1, size);
            assert!(window.len() <= size.1, "{size:?}");
        }
    }
}
