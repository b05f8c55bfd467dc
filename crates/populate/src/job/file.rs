//! The form of jobs in TOML.

use super::address::redacted;
use super::query_end::without_end;
use super::{
    Address, Entries, Format, GateQuery, Gates, Job, Publish, Ratio, Secret, SnapshotOptions,
    Source, Tls,
};
use nuthatch_rows::{ColumnType, KeyTemplate, Nulls};
use nuthatch_snapshot::{Compression, OnDuplicate};
use nuthatch_units::{parse_duration, parse_size};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const MIN_MEMORY: u64 = 64 << 20;
const DAY: Duration = Duration::from_hours(24);

/// A job, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    output: String,
    publish: Option<PublishTable>,
    source: Vec<SourceTable>,
    #[serde(default)]
    gates: GatesTable,
    on_duplicate: Option<String>,
    compress: Option<String>,
    shards: Option<u32>,
    memory: Option<String>,
    threads: Option<u16>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    full_every: Option<String>,
    attempts: Option<u32>,
}

/// Either the destination, or a table with it.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "publish: expected a destination, or a table with to, sign_key, trust_key, \
                 keep, keep_age and delta_limit"
)]
enum PublishTable {
    Destination(String),
    Table(PublishFields),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishFields {
    to: String,
    sign_key: Option<String>,
    #[serde(default)]
    trust_key: Vec<String>,
    keep: Option<u32>,
    keep_age: Option<String>,
    delta_limit: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceTable {
    from: String,
    query: Option<String>,
    key: String,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    types: BTreeMap<String, String>,
    nulls: Option<String>,
    split: Option<String>,
    since: Option<String>,
    readers: Option<u16>,
    password_file: Option<String>,
    password_env: Option<String>,
    tls: Option<String>,
    ca_file: Option<String>,
    format: Option<String>,
    delimiter: Option<String>,
    header: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GatesTable {
    min_entries: Option<u64>,
    max_entry_change: Option<String>,
    max_byte_change: Option<String>,
    max_value_change: Option<String>,
    #[serde(default)]
    required_keys: Vec<String>,
    #[serde(default)]
    sample: u32,
    #[serde(default)]
    query: Vec<QueryTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryTable {
    source: Option<u16>,
    sql: String,
}

impl JobFile {
    /// Parses TOML. Errors have the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        toml_edit::de::from_str(text).map_err(|error: toml_edit::de::Error| {
            // The line itself can have a password.
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
            format!("line {line}: {}", redacted(error.message()))
        })
    }

    /// Returns the job. Relative paths are relative to the folder.
    pub(super) fn job(self, folder: &Path) -> Result<Job, String> {
        if self.source.is_empty() {
            return Err("expected at least one [[source]]".to_owned());
        }
        let mut sources = Vec::new();
        for (at, table) in self.source.into_iter().enumerate() {
            let number = u16::try_from(at + 1).map_err(|_| "expected at most 65,535 sources")?;
            let source = table.source(number, folder);
            sources.push(source.map_err(|message| format!("source {number}: {message}"))?);
        }
        let on_duplicate = one_of(
            "on_duplicate",
            self.on_duplicate.as_deref(),
            &[
                ("error", OnDuplicate::Error),
                ("first", OnDuplicate::First),
                ("last", OnDuplicate::Last),
            ],
        )?;
        let memory = match self.memory.as_deref() {
            Some(text) => parse_size(text).map_err(|message| format!("memory: {message}"))?,
            None => 1 << 30,
        };
        if memory < MIN_MEMORY {
            return Err("memory: expected at least 64MiB".to_owned());
        }
        let full_every = duration("full_every", self.full_every.as_deref())?.unwrap_or(DAY);
        let job = Job {
            output: folder.join(&self.output),
            publish: self.publish.map(|table| table.publish(folder)).transpose()?,
            gates: self.gates.gates(&sources)?,
            sources,
            snapshot: SnapshotOptions {
                on_duplicate,
                compression: compression(self.compress.as_deref())?,
                shards: positive("shards", self.shards)?.unwrap_or(0),
                memory: memory as usize,
                threads: self.threads.map(usize::from),
                metadata: self.metadata,
            },
            full_every,
            attempts: positive("attempts", self.attempts)?.unwrap_or(5),
        };
        check(&job)?;
        Ok(job)
    }
}

/// Checks what several fields of a job must agree on.
fn check(job: &Job) -> Result<(), String> {
    let has_sample = job.gates.sample > 0;
    if has_sample && job.snapshot.on_duplicate != OnDuplicate::Error {
        return Err("gates: sample is for jobs with on_duplicate = \"error\": with another one, \
                    a row need not be the one that is kept"
            .to_owned());
    }
    if job.is_incremental() && job.snapshot.on_duplicate != OnDuplicate::Error {
        return Err("expected on_duplicate = \"error\" in an incremental job".to_owned());
    }
    let flattens =
        |source: &Source| source.entries.types.values().any(|t| *t == ColumnType::Flatten);
    if job.is_incremental() && job.sources.iter().any(flattens) {
        return Err("expected no type \"flatten\" in an incremental job: fields that a changed \
                    row no longer has would stay"
            .to_owned());
    }
    if job.is_incremental() && job.sources.iter().any(|source| source.since.is_none()) {
        return Err("expected \"since\" for all sources or for none".to_owned());
    }
    let removes = |source: &Source| source.entries.nulls == Nulls::Absent;
    if job.is_incremental() && job.sources.len() > 1 && job.sources.iter().any(removes) {
        return Err(
            "expected nulls = \"empty\" or \"error\" for all sources of an incremental job \
                    with several: a NULL of one would remove the entry of another"
                .to_owned(),
        );
    }
    if job.output.ends_with("-") {
        return Err("output: expected the path of a file, found -".to_owned());
    }
    Ok(())
}

impl PublishTable {
    fn publish(self, folder: &Path) -> Result<Publish, String> {
        let fields = match self {
            Self::Destination(to) => {
                return Ok(Publish::to(destination("publish", &to, folder)?));
            }
            Self::Table(fields) => fields,
        };
        let defaults = Publish::to(destination("publish.to", &fields.to, folder)?);
        let keep = positive("publish.keep", fields.keep)?;
        let delta_limit = fields.delta_limit.as_deref().map(parse_size).transpose();
        let delta_limit = delta_limit.map_err(|found| format!("publish.delta_limit: {found}"))?;
        Ok(Publish {
            signing_key: fields.sign_key.map(|path| folder.join(path)),
            trusted_keys: fields.trust_key.iter().map(|path| folder.join(path)).collect(),
            keep: keep.map_or(defaults.keep, |keep| keep as usize),
            keep_age: duration("publish.keep_age", fields.keep_age.as_deref())?,
            delta_limit: delta_limit.unwrap_or(defaults.delta_limit),
            ..defaults
        })
    }
}

/// Returns a destination, relative to a folder if it is a path.
fn destination(field: &str, to: &str, folder: &Path) -> Result<String, String> {
    if to.is_empty() {
        return Err(format!(
            "{field}: expected a folder, or an address such as s3://bucket/path, found an empty \
             text"
        ));
    }
    let is_address = to.contains("://");
    Ok(if is_address { to.to_owned() } else { folder.join(to).display().to_string() })
}

/// Returns a number, after refusing 0.
fn positive(field: &str, number: Option<u32>) -> Result<Option<u32>, String> {
    match number {
        Some(0) => Err(format!("{field}: expected at least 1, found 0")),
        number => Ok(number),
    }
}

impl SourceTable {
    /// Fails if NULL counts in lines of JSON whose columns are not named.
    fn check_nulls(&self, nulls: Nulls) -> Result<(), String> {
        let is_json = self.format.as_deref() == Some("jsonl")
            || [".jsonl", ".ndjson"].iter().any(|name| self.from.contains(name));
        if is_json && nulls != Nulls::Absent && self.values.is_empty() {
            return Err("nulls: expected the names of the columns in \"values\", since each line \
                        of JSON can have others"
                .to_owned());
        }
        Ok(())
    }

    fn source(self, number: u16, folder: &Path) -> Result<Source, String> {
        let address =
            Address::parse(&self.from, folder).map_err(|message| format!("from: {message}"))?;
        let is_database = address.is_database();
        let misplaced = |name: &str, place: &str| Err(format!("{name} is for {place} only"));
        match (&self.query, is_database) {
            (None, true) => return Err("expected a query, since \"from\" is a database".to_owned()),
            (Some(_), false) => return misplaced("query", "databases"),
            _ => {}
        }
        if !is_database {
            if self.since.is_some() {
                return misplaced("since", "databases");
            }
            if self.password_file.is_some() || self.password_env.is_some() {
                return misplaced("a password", "databases");
            }
        } else if self.format.is_some() || self.header.is_some() || self.delimiter.is_some() {
            return misplaced("format, delimiter and header", "files");
        }
        if self.split.is_some() && !matches!(address, Address::Postgres(_)) {
            return misplaced("split", "PostgreSQL");
        }
        let nulls = one_of(
            "nulls",
            self.nulls.as_deref(),
            &[("absent", Nulls::Absent), ("empty", Nulls::Empty), ("error", Nulls::Error)],
        )?;
        if !is_database {
            self.check_nulls(nulls)?;
        }
        let password = match (self.password_file, self.password_env) {
            (Some(_), Some(_)) => {
                return Err("expected one of password_file and password_env".to_owned());
            }
            (Some(path), None) => Some(Secret::File(folder.join(path))),
            (None, Some(name)) => Some(Secret::Variable(name)),
            (None, None) => None,
        };
        let mut types = BTreeMap::new();
        for (column, name) in self.types {
            let parsed = ColumnType::parse(&name);
            let column_type = parsed.map_err(|message| format!("types.{column}: {message}"))?;
            types.insert(column, column_type);
        }
        let key = KeyTemplate::parse(&self.key)?;
        let tls = self.tls.as_deref().map(|text| {
            one_of(
                "tls",
                Some(text),
                &[("verify", Tls::Verify), ("unverified", Tls::Unverified), ("off", Tls::Off)],
            )
        });
        Ok(Source {
            number,
            address,
            query: self.query.as_deref().map(without_end),
            entries: Entries { key, values: self.values, types, nulls },
            split: self.split,
            since: self.since,
            readers: usize::from(self.readers.unwrap_or(2).clamp(1, 64)),
            password,
            tls: tls.transpose()?,
            ca_file: self.ca_file.map(|path: String| folder.join(path)),
            format: self.format.as_deref().map(Format::parse).transpose()?,
            delimiter: delimiter(self.delimiter.as_deref())?,
            header: self.header,
        })
    }
}

impl Format {
    /// Returns the format with this name.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        one_of(
            "format",
            Some(name),
            &[
                ("csv", Self::Csv),
                ("jsonl", Self::JsonLines),
                ("parquet", Self::Parquet),
                ("arrow", Self::ArrowIpc),
            ],
        )
    }
}

impl GatesTable {
    fn gates(self, sources: &[Source]) -> Result<Gates, String> {
        let ratio = |name: &str, text: Option<String>| {
            let parsed = text.as_deref().map(Ratio::parse).transpose();
            parsed.map_err(|message| format!("gates.{name}: {message}"))
        };
        let mut queries = Vec::new();
        for table in self.query {
            let source = table.source.unwrap_or(1);
            let found = sources.get(usize::from(source).wrapping_sub(1));
            if !found.is_some_and(|source| source.address.is_database()) {
                return Err(format!(
                    "gates.query: expected the number of a source that is a database, found \
                     {source}"
                ));
            }
            queries.push(GateQuery { source, query: without_end(&table.sql) });
        }
        Ok(Gates {
            min_entries: Some(self.min_entries.unwrap_or(1)),
            max_entry_change: ratio("max_entry_change", self.max_entry_change)?,
            max_byte_change: ratio("max_byte_change", self.max_byte_change)?,
            max_value_change: ratio("max_value_change", self.max_value_change)?,
            required_keys: self.required_keys,
            sample: self.sample as usize,
            queries,
        })
    }
}

/// Returns the choice with this name; the first one if there is none.
fn one_of<T: Copy>(field: &str, name: Option<&str>, choices: &[(&str, T)]) -> Result<T, String> {
    let Some(name) = name else { return Ok(choices[0].1) };
    let found = choices.iter().find(|(known, _)| *known == name);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        format!("{field}: expected {}; found \"{name}\"", names.join(" or "))
    })
}

fn duration(field: &str, text: Option<&str>) -> Result<Option<Duration>, String> {
    let Some(text) = text else { return Ok(None) };
    let found =
        || format!("{field}: expected a time such as \"15min\" or \"24h\", found \"{text}\"");
    parse_duration(text).map(Some).ok_or_else(found)
}

fn delimiter(text: Option<&str>) -> Result<u8, String> {
    match text.map(str::as_bytes) {
        None => Ok(b','),
        Some(b"tab") => Ok(b'\t'),
        Some([byte]) if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
        Some(_) => Err("delimiter: expected one ASCII character, or \"tab\"".to_owned()),
    }
}

fn compression(text: Option<&str>) -> Result<Compression, String> {
    let level = match text {
        None | Some("none") => return Ok(Compression::None),
        Some("zstd") => Some(3),
        Some(text) => text.strip_prefix("zstd:").and_then(|level| level.parse::<i32>().ok()),
    };
    level
        .filter(|level| (1..=22).contains(level))
        .map(|level| Compression::Zstd { level })
        .ok_or_else(|| {
            "compress: expected \"none\", \"zstd\" or \"zstd:LEVEL\" with a level from 1 to 22"
                .into()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const SOURCE: &str =
        "[[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select 1;\"\nkey = \"{a}\"\n";

    fn job(text: &str) -> Result<Job, String> {
        JobFile::parse(text)?.job(Path::new("/jobs"))
    }

    #[test]
    fn paths_are_relative_to_the_folder_of_the_job() {
        let text =
            format!("output = \"a.nut\"\npublish = \"shared\"\n{SOURCE}ca_file = \"ca.pem\"");
        let job = job(&text).expect("a job");
        assert_eq!(job.output, PathBuf::from("/jobs/a.nut"));
        assert_eq!(job.publish.expect("a destination").destination, "/jobs/shared");
        assert_eq!(job.sources[0].ca_file, Some(PathBuf::from("/jobs/ca.pem")));
        assert_eq!(job.sources[0].query.as_deref(), Some("select 1"));
    }

    #[test]
    fn faults_name_the_field() {
        for (text, expected) in [
            ("output = \"a\"\nsource = []", "expected at least one [[source]]"),
            (&format!("output = \"a\"\nshard = 1\n{SOURCE}"), "unknown field `shard`"),
            (&format!("output = \"a\"\nmemory = \"1MiB\"\n{SOURCE}"), "at least 64MiB"),
            (&format!("output = \"a\"\n{SOURCE}nulls = \"x\""), "source 1: nulls: expected"),
            (&format!("output = \"a\"\n{SOURCE}types = {{ a = \"int\" }}"), "types.a: expected"),
            (&format!("output = \"a\"\n{SOURCE}split = \"a\""), "split is for PostgreSQL only"),
            (&format!("output = \"a\"\n{SOURCE}[gates]\nmax_byte_change = \"1\""), "percentage"),
            (
                &format!("output = \"a\"\non_duplicate = \"last\"\n{SOURCE}[gates]\nsample = 1"),
                "sample",
            ),
            (
                "output = \"a\"\n[[source]]\nfrom = \"a.csv\"\nquery = \"x\"\nkey = \"{a}\"",
                "databases",
            ),
            (
                "output = \"a\"\n[[source]]\nfrom = \"mysql://h/d\"\nkey = \"{a}\"",
                "expected a query",
            ),
        ] {
            let error = job(text).expect_err(text);
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
