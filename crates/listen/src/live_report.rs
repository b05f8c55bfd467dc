//! What a server reports to its live page beside its metrics.

/// The state of a server that metrics do not have, such as its slowest requests and its clients.
///
/// The admin endpoint sends it as JSON, at most [`LiveTable::MAX_ROWS`] rows of a table, and hides
/// [`LiveValue::Private`] unless the request has the token.
#[derive(Clone, Debug, Default)]
pub struct LiveReport {
    /// What serves, such as `cache server`.
    pub server: &'static str,
    /// The tables of the report.
    pub tables: Vec<LiveTable>,
}

/// A table of a report.
#[derive(Clone, Debug)]
pub struct LiveTable {
    /// Its name in the JSON document, such as `clients`.
    pub name: &'static str,
    /// Values about the whole table, such as the number of rows that were left out.
    pub summary: LiveRow,
    /// The rows, the most important one first.
    pub rows: Vec<LiveRow>,
}

/// The values of a row, by name.
pub type LiveRow = Vec<(&'static str, LiveValue)>;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveValue {
    /// A number.
    Number(f64),
    /// A text that every reader of the page may see.
    Text(String),
    /// Bytes of clients or about them, such as a key or an address. Hidden without the token.
    Private(Vec<u8>),
    /// The first bytes of a private value that is too long to keep. Hidden without the token.
    PrivateStart {
        /// The first bytes.
        start: Vec<u8>,
        /// The length of the whole value in bytes.
        len: u64,
        /// A hash of the whole value, with a random key: it tells values with one start apart.
        hash: u64,
    },
}

impl LiveTable {
    /// Maximum number of rows of a table.
    pub const MAX_ROWS: usize = 50;

    /// Creates a table without a summary.
    #[must_use]
    pub fn new(name: &'static str, rows: Vec<LiveRow>) -> Self {
        Self { name, summary: LiveRow::new(), rows }
    }
}

impl LiveValue {
    /// Returns private bytes.
    #[must_use]
    pub fn private(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Private(bytes.into())
    }
}

impl From<u64> for LiveValue {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<f64> for LiveValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for LiveValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
