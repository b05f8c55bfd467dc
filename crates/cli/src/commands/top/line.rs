//! A line of text on the screen.

/// The style of a line on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// The first line.
    Title,
    /// The headings of columns.
    Head,
    /// A problem.
    Alarm,
}

/// A line of text.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) style: Style,
}
