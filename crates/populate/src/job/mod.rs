//! Jobs: what is read, what is written, and what must hold before it is published.

mod address;
mod file;
mod query_end;
mod ratio;
mod secret;

pub use address::Address;
pub use ratio::Ratio;
pub use secret::Secret;

use crate::error::{Error, Result};
use nuthatch_rows::{ColumnType, KeyTemplate, Mapper, Mapping, Nulls};
use nuthatch_snapshot::{Compression, OnDuplicate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A job: sources, the snapshot that is made from them, and its gates.
#[derive(Clone, Debug)]
pub struct Job {
    /// The path of the snapshot.
    pub output: PathBuf,
    /// Where the snapshot is published, if it is.
    pub publish: Option<Publish>,
    /// The sources, in the order in which their rows are added.
    pub sources: Vec<Source>,
    /// Options of the snapshot.
    pub snapshot: SnapshotOptions,
    /// What must hold before the snapshot replaces the last generation.
    pub gates: Gates,
    /// Maximum time between full runs of an incremental job.
    pub full_every: Duration,
    /// Maximum number of attempts, with a wait between them, if connections are lost.
    pub attempts: u32,
}

/// Options of the snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotOptions {
    /// How several rows with the same key are handled.
    pub on_duplicate: OnDuplicate,
    /// How values are compressed.
    pub compression: Compression,
    /// Number of shards; 0 for one file.
    pub shards: u32,
    /// Memory budget in bytes, for reading and building.
    pub memory: usize,
    /// Maximum number of threads of the build; `None` for all cores.
    pub threads: Option<usize>,
    /// Metadata by name.
    pub metadata: BTreeMap<String, String>,
}

/// Where the snapshot is published.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The destination of `nuthatch publish`.
    pub destination: String,
    /// The private key that signs the manifest.
    pub signing_key: Option<PathBuf>,
    /// Public keys that may have signed the manifest before.
    pub trusted_keys: Vec<PathBuf>,
    /// Maximum number of generations that are kept.
    pub keep: usize,
    /// Maximum age of generations that are kept.
    pub keep_age: Option<Duration>,
    /// Maximum length of a file for which a delta is made, in bytes.
    pub delta_limit: u64,
}

impl Publish {
    /// Returns a publication to a destination with the defaults of `nuthatch publish`.
    pub fn to(destination: String) -> Self {
        Self {
            destination,
            signing_key: None,
            trusted_keys: Vec::new(),
            keep: 10,
            keep_age: None,
            delta_limit: 1 << 30,
        }
    }
}

/// A source of rows, and the entries that are made from them.
#[derive(Clone, Debug)]
pub struct Source {
    /// The number of the source in the job, from 1.
    pub(crate) number: u16,
    /// The database or the files.
    pub(crate) address: Address,
    /// The query, for databases.
    pub(crate) query: Option<String>,
    /// How rows become entries.
    pub(crate) entries: Entries,
    /// The column of integers by whose ranges the source is read in parallel.
    pub(crate) split: Option<String>,
    /// The column that grows whenever a row changes.
    pub(crate) since: Option<String>,
    /// Maximum number of threads that read the source.
    pub(crate) readers: usize,
    /// The password of the database.
    pub(crate) password: Option<Secret>,
    /// How connections are encrypted.
    pub(crate) tls: Option<Tls>,
    /// A file of certificates, in addition to those of the system.
    pub(crate) ca_file: Option<PathBuf>,
    /// The format of files; `None` for the one of their name.
    pub(crate) format: Option<Format>,
    /// The separator of CSV.
    pub(crate) delimiter: u8,
    /// The names of the columns of CSV without a header line.
    pub(crate) header: Option<Vec<String>>,
}

impl Source {
    /// Returns whether one thread reads all rows, in the order of the query or of the only file.
    pub(crate) fn is_read_in_order(&self) -> bool {
        match &self.address {
            Address::Postgres(_) => self.split.is_none(),
            Address::Mysql(_) | Address::Sqlite(_) => true,
            Address::Files(address) => {
                let is_parquet = self.format == Some(Format::Parquet)
                    || address.to_ascii_lowercase().ends_with(".parquet");
                !address.contains('*') && (self.readers == 1 || !is_parquet)
            }
        }
    }

    /// Returns the address without secrets, for messages.
    pub(crate) fn name(&self) -> String {
        self.address.to_string()
    }
}

/// How rows become entries.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    pub(crate) key: KeyTemplate,
    /// The columns with values; empty for all but those of the key.
    pub(crate) values: Vec<String>,
    pub(crate) types: BTreeMap<String, ColumnType>,
    pub(crate) nulls: Nulls,
}

impl Entries {
    /// Returns the mapper for rows with these columns. `source` is the name of the source.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Source`] if the columns do not fit.
    pub(crate) fn mapper(&self, source: &str, names: &[String]) -> Result<Mapper> {
        let Self { key, values, types, nulls } = self;
        let mapping = Mapping::new(names, key, values, types, *nulls);
        let mapping = mapping.map_err(|message| Error::source(source, message))?;
        Ok(Mapper::new(Arc::new(mapping)))
    }
}

/// How connections to a database are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Encrypted; the certificate of the server must be valid for its name.
    Verify,
    /// Encrypted, without a check of the server.
    Unverified,
    /// Not encrypted.
    Off,
}

/// The format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Values separated by commas, or by another character.
    Csv,
    /// An object in JSON on each line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// A file or a stream of Apache Arrow's interprocess format.
    ArrowIpc,
}

/// What must hold before the snapshot replaces the last generation.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// Minimum number of entries.
    pub min_entries: Option<u64>,
    /// Maximum change of the number of entries.
    pub max_entry_change: Option<Ratio>,
    /// Maximum change of the size.
    pub max_byte_change: Option<Ratio>,
    /// Maximum share of entries that are new, removed, or have another value.
    pub max_value_change: Option<Ratio>,
    /// Keys that must exist.
    pub required_keys: Vec<String>,
    /// Number of rows of each source that are read again and compared.
    pub sample: usize,
    /// Queries that must return true.
    pub queries: Vec<GateQuery>,
}

/// A query that must return true.
#[derive(Clone, Debug)]
pub struct GateQuery {
    /// The number of the source whose database runs it, from 1.
    pub source: u16,
    /// The query. It returns one column and at most one row.
    pub query: String,
}

impl Gates {
    /// Returns whether a gate compares the snapshot with the last generation.
    pub(crate) fn has_comparison(&self) -> bool {
        self.max_entry_change.is_some()
            || self.max_byte_change.is_some()
            || self.max_value_change.is_some()
    }
}

impl Job {
    /// Reads a job from a file in TOML. Relative paths in it are relative to its folder.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Job`] with the file and the line if it cannot be read or is not a job.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Job(format!("{}: read: {error}", path.display())))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let parsed = file::JobFile::parse(&text).and_then(|job| job.job(folder));
        parsed.map_err(|message| Error::Job(format!("{}: {message}", path.display())))
    }

    /// Returns a job for the text of a file in TOML. Relative paths in it are relative to the
    /// working directory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Job`] with the line if it is not a job.
    pub fn parse(text: &str) -> Result<Self> {
        let parsed = file::JobFile::parse(text).and_then(|job| job.job(Path::new("")));
        parsed.map_err(Error::Job)
    }

    /// Returns whether runs read only what changed since the last one.
    pub fn is_incremental(&self) -> bool {
        self.sources.iter().any(|source| source.since.is_some())
    }
}
