//! The deltas of a publication: for each new file, the rows by which it differs from the file of
//! the current generation.

use super::PublishOptions;
use super::scratch::ScratchFolder;
use super::source::{Source, SourceFile, open};
use super::upload::upload_object;
use crate::delta::{self, Header, Limits, Rebuild};
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::{DataFile, Delta, Generation, Manifest};
use crate::staging::download;
use blake3::Hash;
use nuthatch_snapshot::{BuildParameters, Snapshot};
use std::fmt::Display;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

/// Memory of the build that checks a delta, in bytes.
const MEMORY: usize = 512 << 20;
/// Length of the prefix that the names of a shard have in all generations: its number.
const SHARD_PREFIX_LEN: usize = 6;

/// The deltas that were added to the files of a publication.
#[derive(Default)]
pub(super) struct AddedDeltas {
    pub(super) uploaded_bytes: u64,
    pub(super) failures: Vec<String>,
}

/// Makes deltas to the new files from those of the current generation of a manifest, and uploads
/// them. Each is checked: it is kept only if the file that is built with it has the same bytes.
///
/// # Errors
/// Returns the errors of the upload. What prevents a delta is no error: followers then fetch the
/// whole file.
pub(super) async fn add(
    destination: &Destination,
    source: &Source,
    manifest: &Manifest,
    files: &mut [DataFile],
    options: &PublishOptions,
) -> Result<AddedDeltas> {
    let mut added = AddedDeltas::default();
    let Some(last) = manifest.generation(manifest.current) else { return Ok(added) };
    let is_set = files.len() > 1;
    if is_set && files.len() != last.files.len() {
        // With another number of shards, most entries are in another one.
        return Ok(added);
    }
    for (file, source) in files.iter_mut().zip(&source.files).skip(usize::from(is_set)) {
        if source.uploaded.is_some() {
            continue;
        }
        let Some(base) = wanted_base(file, last, is_set, options.delta_limit) else { continue };
        let limits = Limits {
            threads: available_parallelism().map_or(1, NonZero::get),
            memory: MEMORY,
            entry_bytes: options.delta_limit,
        };
        let made = make(destination, source, base, limits).await;
        match made {
            Ok(Made::Delta(made)) => {
                let delta = made.upload(destination, manifest.serial).await?;
                added.uploaded_bytes += delta.bytes;
                file.delta = Some(delta);
            }
            Ok(Made::None) => {}
            Ok(Made::Unsuitable(reason)) => added.failures.push(format!("{}: {reason}", file.name)),
            Err(error) => added.failures.push(format!("{}: {error}", file.name)),
        }
    }
    Ok(added)
}

/// Returns the file of the last generation from which a delta to a new one is to be made, if any.
pub(super) fn wanted_base<'g>(
    file: &DataFile,
    last: &'g Generation,
    is_set: bool,
    limit: u64,
) -> Option<&'g DataFile> {
    let base = base_of(file, last, is_set)?;
    let is_reachable = file.delta.as_ref().is_some_and(|delta| delta.from == base.blake3);
    if file.blake3 == base.blake3 || is_reachable {
        return None;
    }
    let limits = delta::MIN_FILE_BYTES..=limit;
    (limits.contains(&file.bytes) && base.bytes <= limit).then_some(base)
}

/// Returns the file of the last generation that has the place of a new one.
fn base_of<'g>(file: &DataFile, last: &'g Generation, is_set: bool) -> Option<&'g DataFile> {
    match &*last.files {
        [base] if !is_set => Some(base),
        [_, shards @ ..] if is_set => {
            let prefix = file.name.get(..SHARD_PREFIX_LEN)?;
            shards.iter().find(|shard| shard.name.starts_with(prefix))
        }
        _ => None,
    }
}

pub(super) enum Made {
    Delta(Box<MadeDelta>),
    /// The changes, or the entries, are too many.
    None,
    /// Why no delta gives the bytes of the file.
    Unsuitable(&'static str),
}

/// A delta in a temporary folder.
pub(super) struct MadeDelta {
    file: SourceFile,
    from: String,
    _folder: ScratchFolder,
}

impl MadeDelta {
    /// Uploads the delta as an object, whose name has a suffix.
    pub(super) async fn upload(
        &self,
        destination: &Destination,
        suffix: impl Display,
    ) -> Result<Delta> {
        let object = upload_object(destination, &self.file, suffix, |_| {}).await?;
        let (from, blake3) = (self.from.clone(), self.file.blake3.clone());
        Ok(Delta { from, bytes: self.file.bytes, blake3, object })
    }
}

/// Makes a delta to a file from an earlier one, and checks it.
pub(super) async fn make(
    destination: &Destination,
    source: &SourceFile,
    base: &DataFile,
    limits: Limits,
) -> Result<Made> {
    let new = Snapshot::open(&source.path)?;
    let stats = new.stats();
    if stats.key_bytes.saturating_add(stats.value_bytes) > limits.entry_bytes {
        return Ok(Made::None);
    }
    let folder = ScratchFolder::create(&source.path)?;
    let base_path = fetch_base(destination, base, folder.path()).await?;
    let old = Snapshot::open(&base_path)?;
    let Some(parameters) = BuildParameters::of(&new)? else {
        return Ok(Made::Unsuitable("this version compresses its values to other bytes"));
    };
    let hash = |text: &str| Hash::from_hex(text).expect("the manifest was checked");
    let (from, to) = (hash(&base.blake3), hash(&source.blake3));
    let header = Header { parameters, revision: parameters.revision(), from, to };
    let path = folder.path().join("delta");
    let max_bytes = delta::max_bytes(source.bytes);
    if delta::write((&old, &new), &header, &path, max_bytes)?.is_none() {
        return Ok(Made::None);
    }
    let rebuild = Rebuild {
        base: &base_path,
        deltas: std::slice::from_ref(&path),
        limits,
        from,
        to,
        cancelled: &AtomicBool::new(false),
    };
    match rebuild.run(&folder.path().join("new")) {
        Ok(()) => {}
        Err(Error::Contents { .. }) => {
            return Ok(Made::Unsuitable("a build from its entries gives other bytes"));
        }
        Err(error) => return Err(error),
    }
    // A copy in a folder has at most the permissions of the snapshot.
    let file = SourceFile { mode: source.mode, ..open(&path, "delta")? };
    Ok(Made::Delta(Box::new(MadeDelta { file, from: base.blake3.clone(), _folder: folder })))
}

/// Returns the path of an object on this machine, after it was downloaded if it was not here.
async fn fetch_base(destination: &Destination, base: &DataFile, to: &Path) -> Result<PathBuf> {
    if let Some(local) = destination.local_object(&base.object) {
        return Ok(local);
    }
    let path = to.join("old");
    download(destination, base, &path).await?;
    Ok(path)
}
