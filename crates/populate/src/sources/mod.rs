//! Readers of databases and files.
//!
//! A [`Session`] reads all sources of one database, in one snapshot of it. To add a kind of source,
//! write a session in a file of its own, and add its address to `job/address.rs` and to [`open`].

mod files;
mod mysql;
mod parts;
mod postgres;
mod receiver;
mod runtime;
mod sqlite;
mod tls;

pub(crate) use receiver::{MakeReceiver, RowReceiver, Stop};

use crate::error::Result;
use crate::interruption::Interruption;
use crate::job::{Address, Source};
use nuthatch_rows::Literal;
use std::fmt::Write;

/// An open database, in one snapshot of it, or files.
pub(crate) trait Session: Send {
    /// Returns the approximate number of rows of a source, if it is known.
    fn estimated_rows(&mut self, source: &Source) -> Option<u64>;

    /// Reads all rows of a source. `query` replaces that of the source. Each thread that reads
    /// makes a receiver for its rows.
    ///
    /// # Errors
    ///
    /// Returns [`Stop::Enough`] if a receiver wants no more rows, and [`Stop::Fault`] if the source
    /// cannot be read or a row cannot be stored.
    fn read(
        &mut self,
        source: &Source,
        query: Option<&str>,
        make_receiver: &MakeReceiver<'_>,
    ) -> Result<(), Stop>;

    /// Returns how queries are written; `None` if the source has no queries.
    fn dialect(&self) -> Option<Dialect>;
}

/// The sources of one database, by their index in the job.
pub(crate) struct Group {
    pub(crate) session: Box<dyn Session>,
    pub(crate) sources: Vec<usize>,
}

/// Opens the sources: one session for each database.
///
/// # Errors
///
/// Returns [`crate::Error::Source`] if a database cannot be opened.
pub(crate) fn open(sources: &[Source], interruption: &Interruption) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let is_same = |other: &&mut Group| {
            let first = &sources[other.sources[0]];
            source.address.is_database()
                && first.address == source.address
                && first.password == source.password
                && (first.tls, &first.ca_file) == (source.tls, &source.ca_file)
        };
        if let Some(group) = groups.iter_mut().find(is_same) {
            group.sources.push(index);
            continue;
        }
        let session: Box<dyn Session> = match &source.address {
            Address::Postgres(url) => {
                Box::new(postgres::PostgresSession::open(source, url, interruption)?)
            }
            Address::Mysql(url) => Box::new(mysql::MysqlSession::open(source, url, interruption)?),
            Address::Sqlite(path) => {
                Box::new(sqlite::SqliteSession::open(source, path, interruption)?)
            }
            Address::Files(address) => {
                Box::new(files::FileSession::open(source, address, interruption)?)
            }
        };
        groups.push(Group { session, sources: vec![index] });
    }
    Ok(groups)
}

/// How a database writes names and texts in queries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    /// The character around names.
    name_quote: char,
    /// Whether a backslash in a text must be doubled.
    has_backslash_escapes: bool,
    nul: Nul,
}

/// How a database writes a text that has a NUL character.
#[derive(Clone, Copy, Debug)]
enum Nul {
    /// As any other text: the database has no such texts.
    Plain,
    /// By a function that replaces a stand-in. A cast of bytes would depend on the encoding of the
    /// database, and numbers in a column without a type would be compared as texts with it.
    Replaced,
    /// By the bytes of the text in hexadecimal digits, with the character set of the connection.
    Hexadecimal,
}

impl Dialect {
    /// Returns a name in quotes.
    fn name(self, name: &str) -> String {
        let quote = self.name_quote;
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }

    fn literal(self, literal: &Literal) -> String {
        match literal {
            Literal::Int(int) => int.to_string(),
            Literal::Float(float) => float.clone(),
            Literal::Text(text) => match self.nul {
                Nul::Replaced if text.contains('\0') => {
                    let unused = ('\u{1}'..=char::MAX).find(|c| !text.contains(*c));
                    let stand_in = String::from(unused.expect("texts do not have all characters"));
                    let (text, stand_in) = (text.replace('\0', &stand_in), self.text(&stand_in));
                    format!("replace({}, {stand_in}, char(0))", self.text(&text))
                }
                Nul::Hexadecimal if text.contains('\0') => {
                    let mut digits = String::with_capacity(2 * text.len());
                    for byte in text.bytes() {
                        let _ = write!(digits, "{byte:02x}");
                    }
                    format!("_utf8mb4 x'{digits}'")
                }
                _ => self.text(text),
            },
        }
    }

    /// Returns a text in quotes.
    fn text(self, text: &str) -> String {
        let text = text.replace('\'', "''");
        let doubled = self.has_backslash_escapes.then(|| text.replace('\\', "\\\\"));
        format!("'{}'", doubled.unwrap_or(text))
    }

    /// Returns the query for the highest value of a column of another query.
    pub(crate) fn query_of_max(self, query: &str, column: &str) -> String {
        format!("select max({}) from ({query}\n) as source_rows", self.name(column))
    }

    /// Returns the query for the rows of another query whose column has at least this value.
    pub(crate) fn query_since(self, query: &str, column: &str, since: &Literal) -> String {
        let (column, since) = (self.name(column), self.literal(since));
        format!("select * from ({query}\n) as source_rows where {column} >= {since}")
    }

    /// Returns the query for the rows of another query that have these values: a list of columns,
    /// and for each row the literals.
    pub(crate) fn query_of_rows(
        self,
        query: &str,
        columns: &[&str],
        rows: &[&[Literal]],
    ) -> String {
        let row = |literals: &&[Literal]| {
            let equal = columns.iter().zip(literals.iter());
            let terms: Vec<_> = equal
                .map(|(column, literal)| {
                    format!("{} = {}", self.name(column), self.literal(literal))
                })
                .collect();
            format!("({})", terms.join(" and "))
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        format!("select * from ({query}\n) as source_rows where {}", rows.join(" or "))
    }
}

/// Returns the part of a text that an error message quotes.
fn quoted(text: &[u8]) -> String {
    const MAX_LEN: usize = 60;
    let short = &text[..text.len().min(MAX_LEN)];
    let dots = if text.len() > MAX_LEN { "…" } else { "" };
    format!("\"{}{dots}\"", String::from_utf8_lossy(short).escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_their_literal() {
        let rows = [&[Literal::Text("a'b\\".into()), Literal::Int(7)][..]];
        let standard = Dialect { name_quote: '"', has_backslash_escapes: false, nul: Nul::Plain };
        let query = standard.query_of_rows("select 1", &["n\"x", "id"], &rows);
        assert!(query.ends_with("where (\"n\"\"x\" = 'a''b\\' and \"id\" = 7)"), "{query}");
        let nul = Nul::Hexadecimal;
        let mysql = Dialect { name_quote: '`', has_backslash_escapes: true, nul };
        let query = mysql.query_of_rows("select 1", &["n", "id"], &rows);
        assert!(query.ends_with("(`n` = 'a''b\\\\' and `id` = 7)"), "{query}");
    }

    #[test]
    fn texts_with_nul_characters_are_literals() {
        let text = Literal::Text("a\0\u{1}'".into());
        let sqlite = Dialect { name_quote: '`', has_backslash_escapes: false, nul: Nul::Replaced };
        assert_eq!(sqlite.literal(&text), "replace('a\u{2}\u{1}''', '\u{2}', char(0))");
        let mysql = Dialect { has_backslash_escapes: true, nul: Nul::Hexadecimal, ..sqlite };
        assert_eq!(mysql.literal(&text), "_utf8mb4 x'61000127'");
    }
}
