//! An open input, which returns chunks and the parser for them.

use super::chunks::{ChunkError, ChunkReader, RowEnd, TextChunk};
use super::file::InputFile;
use super::format::{Compression, Format};
use super::options::Options;
use crate::error::{Error, RowError};
use crate::formats::parquet::{self, Block, Blocks};
use crate::formats::{axoncache, csv, dta, json, jsonl, tsv};
use crate::json::ValueBuffers;
use crate::sink::RowSink;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A chunk of whole rows, and the position up to which it is parsed.
pub(crate) enum Chunk {
    Text(TextChunk),
    Block(Block),
    Records(axoncache::Block),
}

impl Chunk {
    /// Returns whether all rows are parsed.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Text(text) => text.is_done(),
            Self::Block(block) => block.rows_left == 0,
            Self::Records(records) => records.is_done(),
        }
    }
}

/// The parser of an input.
pub(crate) enum Parser {
    Jsonl(jsonl::Parser),
    Json(json::Parser),
    Tsv(tsv::Parser),
    Csv(csv::Parser),
    Dta(dta::Parser),
    Parquet(parquet::Parser),
    Axoncache(axoncache::Parser),
}

/// The buffers of a thread, for all formats.
#[derive(Default)]
pub(crate) struct Buffers {
    jsonl: jsonl::Buffers,
    tsv: tsv::Buffers,
    csv: csv::Buffers,
    dta: ValueBuffers,
    parquet: parquet::Buffers,
    axoncache: axoncache::Buffers,
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
            (Self::Json(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.jsonl, sink)),
            (Self::Tsv(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.tsv, sink)),
            (Self::Csv(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.csv, sink)),
            (Self::Dta(p), Chunk::Text(c)) => c.parse(|t| p.parse(t, &mut buffers.dta, sink)),
            (Self::Parquet(p), Chunk::Block(b)) => p.parse(b, &mut buffers.parquet, sink),
            (Self::Axoncache(p), Chunk::Records(r)) => p.parse(r, &mut buffers.axoncache, sink),
            // A source returns only chunks for its parser.
            (_, Chunk::Text(_) | Chunk::Block(_) | Chunk::Records(_)) => Ok(()),
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
    Records(Box<axoncache::Records>),
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
            Format::Jsonl => (Parser::Jsonl(options.jsonl()), Content::text(text(RowEnd::Line)?)),
            Format::Json => open_json(&name, text(RowEnd::Element)?, options)?,
            Format::Tsv => {
                let parser = tsv::Parser { value_type, f32_keys };
                (Parser::Tsv(parser), Content::text(text(RowEnd::Line)?))
            }
            Format::Dta => {
                let parser = dta::Parser { value_type, f32_keys };
                (Parser::Dta(parser), Content::text(text(RowEnd::Record)?))
            }
            Format::Csv => {
                let csv = options.csv();
                let reader = text(RowEnd::CsvLine(csv.delimiter))?;
                open_csv(&name, reader, &csv, options.header.as_deref())?
            }
            Format::Parquet => open_parquet(file, options)?,
            Format::Axoncache => open_axoncache(file)?,
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
            Content::Records(records) => {
                let block = records.next().map_err(|message| Error::format(&self.name, message))?;
                Ok(block.map(|(block, len)| {
                    self.read.fetch_add(len, Ordering::Relaxed);
                    Chunk::Records(block)
                }))
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

/// Reads the start of a JSON document and returns the parser for its elements.
fn open_json(
    name: &str,
    mut reader: ChunkReader<Box<dyn Read + Send>>,
    options: &Options,
) -> Result<(Parser, Content), Error> {
    let mut first = reader.next(Vec::new()).map_err(|e| chunk_error(name, e))?;
    let Some(chunk) = &mut first else {
        return Err(Error::format(name, "expected a JSON document, found an empty file"));
    };
    let opened = chunk.parse(|text| json::open(text, options.key.is_some()));
    let document = opened.map_err(|e| Error::row(name, e))?;
    let parser = json::Parser { document, rows: options.jsonl() };
    Ok((Parser::Json(parser), Content::Text { reader, first }))
}

/// Returns the parser for CSV with this header, which is read by default.
fn open_csv(
    name: &str,
    mut reader: ChunkReader<Box<dyn Read + Send>>,
    options: &csv::Options,
    header: Option<&[String]>,
) -> Result<(Parser, Content), Error> {
    if let Some(names) = header {
        let parser = csv::Parser::new(options, names).map_err(|e| Error::format(name, e))?;
        return Ok((Parser::Csv(parser), Content::text(reader)));
    }
    let mut first = reader.next(Vec::new()).map_err(|e| chunk_error(name, e))?;
    let names = match &mut first {
        Some(chunk) => chunk
            .parse(|text| csv::header(text, options.delimiter))
            .map_err(|e| Error::row(name, e))?,
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
    require_file(file, "Parquet")?;
    let (parser, blocks) = parquet::open(file.file()?, &options.column_names(), options.f32_keys())
        .map_err(|message| Error::format(&file.name, message))?;
    Ok((Parser::Parquet(parser), Content::Blocks(Box::new(blocks))))
}

/// Opens a file of AxonCache.
fn open_axoncache(file: &InputFile) -> Result<(Parser, Content), Error> {
    require_file(file, "AxonCache")?;
    let opened = axoncache::open(file.file()?);
    let (parser, records) = opened.map_err(|message| Error::format(&file.name, message))?;
    Ok((Parser::Axoncache(parser), Content::Records(Box::new(records))))
}

/// Fails if an input of a format that is read from its end is compressed or standard input.
fn require_file(file: &InputFile, format: &str) -> Result<(), Error> {
    if file.is_stdin() || file.compression != Compression::None {
        let expected = format!("expected a file, because {format} is read from its end");
        return Err(Error::format(&file.name, format!("{expected}, found a stream")));
    }
    Ok(())
}

/// Returns the error for a chunk that cannot be read.
fn chunk_error(name: &str, error: ChunkError) -> Error {
    match error {
        ChunkError::Io(source) => Error::io(name, "read", source),
        ChunkError::Truncated(error) => Error::row(name, error),
        ChunkError::LongRow { line, max } => {
            let expected = format!("a row of at most {max} bytes");
            Error::row(name, RowError::at(line, 1, expected, "a longer one"))
        }
    }
}
