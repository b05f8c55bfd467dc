//! An open input, which returns chunks and the parser for them.

use super::chunks::{ChunkError, ChunkReader, RowEnd, TextChunk};
use super::file::InputFile;
use super::format::{Compression, Format};
use super::options::Options;
use crate::error::{Error, RowError};
use crate::formats::parquet::{self, Block, Blocks};
use crate::formats::{csv, dta, jsonl, tsv};
use crate::json::ValueBuffers;
use crate::sink::RowSink;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A chunk of whole rows, and the position up to which it is parsed.
pub(crate) enum Chunk {
    Text(TextChunk),
    Block(Block),
}

impl Chunk {
    /// Returns whether all rows are parsed.
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

/// The buffers of a thread, for all formats.
#[derive(Default)]
pub(crate) struct Buffers {
    jsonl: jsonl::Buffers,
    tsv: tsv::Buffers,
    csv: csv::Buffers,
    dta: ValueBuffers,
    parquet: parquet::Buffers,
}

impl Parser {
    /// Parses rows until the chunk ends or the sink is full.
    pub(crate) fn parse<S: RowSink>(
        &self,
        chunk: &mut Chunk,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        match (self, chunk) {
            (Self::Jsonl(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.jsonl, sink)),
            (Self::Tsv(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.tsv, sink)),
            (Self::Csv(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.csv, sink)),
            (Self::Dta(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.dta, sink)),
            (Self::Parquet(p), Chunk::Block(b)) => p.parse(b, &mut buffers.parquet, sink),
            // A source returns only chunks for its parser.
            (_, Chunk::Text(_) | Chunk::Block(_)) => Ok(()),
        }
    }
}

/// An open input.
pub(crate) struct Source {
    name: String,
    parser: Arc<Parser>,
    content: Content,
    read: Arc<AtomicU64>,
}

enum Content {
    Text {
        reader: ChunkReader<Box<dyn Read + Send>>,
        /// The first chunk, if it was read for its header.
        first: Option<TextChunk>,
    },
    Blocks(Box<Blocks>),
}

impl Source {
    /// Opens an input. Adds the bytes that are read to `read`.
    pub(crate) fn open(
        file: &InputFile,
        format: Format,
        options: &Options,
        read: &Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let name = file.name.clone();
        let (f32_keys, value_type) = (options.f32_keys(), options.value_type());
        let text = |row_end| file.decompressed(read).map(|bytes| ChunkReader::new(bytes, row_end));
        let (parser, content) = match format {
            Format::Jsonl => {
                (Parser::Jsonl(jsonl::Parser { f32_keys }), Content::text(text(RowEnd::Line)?))
            }
            Format::Tsv => {
                let parser = tsv::Parser { value_type, f32_keys };
                (Parser::Tsv(parser), Content::text(text(RowEnd::Line)?))
            }
            Format::Dta => {
                let parser = dta::Parser { value_type, f32_keys };
                (Parser::Dta(parser), Content::text(text(RowEnd::Record)?))
            }
            Format::Csv => open_csv(&name, text(RowEnd::CsvLine)?, &options.csv())?,
            Format::Parquet => open_parquet(file, options)?,
        };
        Ok(Self { name, parser: Arc::new(parser), content, read: Arc::clone(read) })
    }

    /// Returns the parser for the chunks.
    pub(crate) fn parser(&self) -> Arc<Parser> {
        Arc::clone(&self.parser)
    }

    /// Reads the next chunk. `buffer` is reused for its text.
    pub(crate) fn next(&mut self, buffer: Vec<u8>) -> Result<Option<Chunk>, Error> {
        match &mut self.content {
            Content::Text { first: first @ Some(_), .. } => Ok(first.take().map(Chunk::Text)),
            Content::Text { reader, .. } => {
                let chunk = reader.next(buffer).map_err(|e| chunk_error(&self.name, e))?;
                Ok(chunk.map(Chunk::Text))
            }
            Content::Blocks(blocks) => {
                let block = blocks.next().map_err(|message| Error::format(&self.name, message))?;
                Ok(block.map(|(block, len)| {
                    self.read.fetch_add(len, Ordering::Relaxed);
                    Chunk::Block(block)
                }))
            }
        }
    }
}

impl Content {
    fn text(reader: ChunkReader<Box<dyn Read + Send>>) -> Self {
        Self::Text { reader, first: None }
    }
}

/// Reads the header of CSV and returns the parser for it.
fn open_csv(
    name: &str,
    mut reader: ChunkReader<Box<dyn Read + Send>>,
    options: &csv::Options,
) -> Result<(Parser, Content), Error> {
    let mut first = reader.next(Vec::new()).map_err(|e| chunk_error(name, e))?;
    let names = match &mut first {
        Some(chunk) => chunk.parse(csv::header).map_err(|e| Error::row(name, e))?,
        None => Vec::new(),
    };
    if names.is_empty() {
        return Err(Error::format(name, "expected a header with the names of columns, found none"));
    }
    let parser =
        csv::Parser::new(options, &names).map_err(|message| Error::format(name, message))?;
    Ok((Parser::Csv(parser), Content::Text { reader, first }))
}

/// Opens a Parquet file.
fn open_parquet(file: &InputFile, options: &Options) -> Result<(Parser, Content), Error> {
    if file.is_stdin() || file.compression != Compression::None {
        let expected = "expected a file, because Parquet is read from its end";
        return Err(Error::format(&file.name, format!("{expected}, found a stream")));
    }
    let (parser, blocks) = parquet::open(file.file()?, &options.column_names(), options.f32_keys())
        .map_err(|message| Error::format(&file.name, message))?;
    Ok((Parser::Parquet(parser), Content::Blocks(Box::new(blocks))))
}

/// Returns the error for a chunk that cannot be read.
fn chunk_error(name: &str, error: ChunkError) -> Error {
    match error {
        ChunkError::Io(source) => Error::io(name, "read", source),
        ChunkError::LongRow { line, max } => {
            let expected = format!("a row of at most {max} bytes");
            Error::row(name, RowError::at(line, 1, expected, "a longer one"))
        }
    }
}
