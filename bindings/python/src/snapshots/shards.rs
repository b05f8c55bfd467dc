//! Shards of sets that several processes build, for `nuthatch.spark`.

use super::failure::{argument, exception, raised};
use super::frames::{Entries, WriterSink, add_table};
use super::writer::{SnapshotSummary, take_metadata, writer_options};
use crate::convert::KeywordArguments;
use nuthatch_snapshot::{BuiltShard, Error, Scratch, Snapshot, Writer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Number, path, entries and bytes of a shard.
type ShardFields = (u32, PathBuf, u64, u64);

fn fields(built: Vec<BuiltShard>) -> Vec<ShardFields> {
    let fields = |shard: BuiltShard| (shard.number, shard.path, shard.entries, shard.file_len);
    built.into_iter().map(fields).collect()
}

/// Builds the shards of a set that the rows of a table are in, in the folder of the path.
#[pyfunction]
#[pyo3(signature = (table, path, key, values, types, nulls, /, **options))]
pub(super) fn _write_shards(
    table: &Bound<'_, PyAny>,
    path: PathBuf,
    key: &str,
    values: Option<Vec<String>>,
    types: Option<BTreeMap<String, String>>,
    nulls: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<ShardFields>> {
    let py = table.py();
    let arguments = KeywordArguments::new("_write_shards", options);
    let settings = writer_options(py, &arguments)?;
    arguments.finish()?;
    let entries = Entries::parse(py, key, values, types, nulls)?;
    let mut writer = raised(py, py.detach(|| settings.create(&path)))?;
    add_table(table, &entries, &mut WriterSink(&mut writer))?;
    raised(py, py.detach(|| writer.finish_shards())).map(fields)
}

/// Builds the shards of a set that the entries of other snapshots are in, in the folder of the
/// path.
#[pyfunction]
#[pyo3(signature = (path, parts, /, **options))]
pub(super) fn _merge_shards(
    py: Python<'_>,
    path: PathBuf,
    parts: Vec<PathBuf>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<ShardFields>> {
    let arguments = KeywordArguments::new("_merge_shards", options);
    let settings = writer_options(py, &arguments)?;
    arguments.finish()?;
    let mut writer = raised(py, py.detach(|| settings.create(&path)))?;
    for part in &parts {
        raised(py, py.detach(|| add_snapshot(&mut writer, part)))?;
        py.check_signals()?;
    }
    match py.detach(|| writer.finish_shards()) {
        Ok(built) => Ok(fields(built)),
        Err(Error::Duplicate(duplicate)) => {
            // Positions of entries of parts tell nothing.
            let key = duplicate.key.escape_ascii();
            Err(argument(py, format!("duplicate key \"{key}\" in rows of several partitions")))
        }
        Err(error) => Err(exception(py, &error)),
    }
}

fn add_snapshot(writer: &mut Writer, path: &PathBuf) -> nuthatch_snapshot::Result<()> {
    let snapshot = Snapshot::open(path)?;
    let mut scratch = Scratch::new();
    for entry in snapshot.iter_verified()? {
        let entry = entry?;
        writer.insert(entry.key, entry.value.decompress(&mut scratch)?)?;
    }
    snapshot.check_readable()
}

/// Makes a set of shards that are in the folder of the path, and publishes its manifest there.
#[pyfunction]
#[pyo3(signature = (path, shards, /, **options))]
pub(super) fn _join_shards(
    py: Python<'_>,
    path: PathBuf,
    shards: Vec<PathBuf>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<SnapshotSummary> {
    let arguments = KeywordArguments::new("_join_shards", options);
    let settings = writer_options(py, &arguments)?;
    let metadata = take_metadata(py, &arguments)?;
    arguments.finish()?;
    let pairs: Vec<_> = metadata.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    let joined = py.detach(|| settings.join_shards(&path, &shards, &pairs));
    raised(py, joined).map(SnapshotSummary::from)
}
