//! One input being read: chunks come out, and the parser that takes them apart.

use super::chunks::{CutError, Cutter, Ends, TextChunk};
use super::error::{Error, RowError};
use super::json::Room;
use super::open::{Format, Packing, Place};
use super::options::Options;
use super::parquet::{self, Block, Blocks};
use super::rows::RowSink;
use super::{csv, dta, jsonl, tsv};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Some whole rows of an input, and how far they are parsed.
pub(crate) enum Chunk {
    Text(TextChunk),
    Block(Block),
}

impl Chunk {
    /// Whether all rows are parsed.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Text(text) => text.is_done(),
            Self::Block(block) => block.rows_left == 0,
        }
    }
}

/// The parser of an input.
pub(crate) enum Parser {
    Jsonl(jsonl::Parser),
    Tsv(tsv::Parser),
    Csv(csv::Parser),
    Dta(dta::Parser),
    Parquet(parquet::Parser),
}

/// What a thread needs to parse inputs of all formats.
#[derive(Default)]
pub(crate) struct Rooms {
    jsonl: jsonl::Rooms,
    tsv: tsv::Rooms,
    csv: csv::Rooms,
    dta: Room,
    parquet: parquet::Rooms,
}

impl Parser {
    /// Takes rows from a chunk until it or the room of the sink ends.
    pub(crate) fn parse<S: RowSink>(
        &self,
        chunk: &mut Chunk,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), RowError> {
        match (self, chunk) {
            (Self::Jsonl(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut rooms.jsonl, sink)),
            (Self::Tsv(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut rooms.tsv, sink)),
            (Self::Csv(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut rooms.csv, sink)),
            (Self::Dta(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut rooms.dta, sink)),
            (Self::Parquet(p), Chunk::Block(b)) => p.parse(b, &mut rooms.parquet, sink),
            // Each source makes chunks of its parser's kind only.
            (_, Chunk::Text(_) | Chunk::Block(_)) => Ok(()),
        }
    }
}

/// One input being read.
pub(crate) struct Source {
    name: String,
    parser: Arc<Parser>,
    reading: Reading,
    read: Arc<AtomicU64>,
}

enum Reading {
    Text {
        cutter: Cutter<Box<dyn Read + Send>>,
        /// A chunk that was read before its time, to learn the header.
        first: Option<TextChunk>,
    },
    Blocks(Box<Blocks>),
}

impl Source {
    /// Opens an input. `read` counts its bytes as they are read.
    pub(crate) fn open(
        place: &Place,
        format: Format,
        options: &Options,
        read: &Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let name = place.name.clone();
        let (singles, value_type) = (options.singles(), options.value_type());
        let text = |ends| place.bytes(read).map(|bytes| Cutter::new(bytes, ends));
        let (parser, reading) = match format {
            Format::Jsonl => {
                (Parser::Jsonl(jsonl::Parser { singles }), Reading::text(text(Ends::Line)?))
            }
            Format::Tsv => {
                let parser = tsv::Parser { value_type, singles };
                (Parser::Tsv(parser), Reading::text(text(Ends::Line)?))
            }
            Format::Dta => {
                let parser = dta::Parser { value_type, singles };
                (Parser::Dta(parser), Reading::text(text(Ends::Record)?))
            }
            Format::Csv => open_csv(&name, text(Ends::CsvLine)?, &options.csv())?,
            Format::Parquet => open_parquet(place, options)?,
        };
        Ok(Self { name, parser: Arc::new(parser), reading, read: Arc::clone(read) })
    }

    pub(crate) fn parser(&self) -> Arc<Parser> {
        Arc::clone(&self.parser)
    }

    /// The next chunk, with the help of a buffer that is no longer needed.
    pub(crate) fn next(&mut self, buffer: Vec<u8>) -> Result<Option<Chunk>, Error> {
        match &mut self.reading {
            Reading::Text { first: first @ Some(_), .. } => Ok(first.take().map(Chunk::Text)),
            Reading::Text { cutter, .. } => {
                let chunk = cutter.next(buffer).map_err(|e| cut_error(&self.name, e))?;
                Ok(chunk.map(Chunk::Text))
            }
            Reading::Blocks(blocks) => {
                let block = blocks.next().map_err(|told| Error::format(&self.name, told))?;
                Ok(block.map(|(block, len)| {
                    self.read.fetch_add(len, Ordering::Relaxed);
                    Chunk::Block(block)
                }))
            }
        }
    }
}

impl Reading {
    fn text(cutter: Cutter<Box<dyn Read + Send>>) -> Self {
        Self::Text { cutter, first: None }
    }
}

fn open_csv(
    name: &str,
    mut cutter: Cutter<Box<dyn Read + Send>>,
    options: &csv::Options,
) -> Result<(Parser, Reading), Error> {
    let mut first = cutter.next(Vec::new()).map_err(|e| cut_error(name, e))?;
    let names = match &mut first {
        Some(chunk) => chunk.parse(csv::header).map_err(|e| Error::row(name, e))?,
        None => Vec::new(),
    };
    if names.is_empty() {
        return Err(Error::format(name, "expected a header with the names of columns, found none"));
    }
    let parser = csv::Parser::new(options, &names).map_err(|told| Error::format(name, told))?;
    Ok((Parser::Csv(parser), Reading::Text { cutter, first }))
}

fn open_parquet(place: &Place, options: &Options) -> Result<(Parser, Reading), Error> {
    if place.is_stdin() || place.packing != Packing::None {
        let expected = "expected a file, because Parquet is read from its end";
        return Err(Error::format(&place.name, format!("{expected}, found a stream")));
    }
    let (parser, blocks) = parquet::open(place.file()?, &options.choice(), options.singles())
        .map_err(|told| Error::format(&place.name, told))?;
    Ok((Parser::Parquet(parser), Reading::Blocks(Box::new(blocks))))
}

fn cut_error(name: &str, error: CutError) -> Error {
    match error {
        CutError::Io(source) => Error::io(name, "read", source),
        CutError::LongRow { line, most } => {
            let expected = format!("a row of at most {most} bytes");
            Error::row(name, RowError::at(line, 1, expected, "a longer one"))
        }
    }
}
