//! Publishing: uploads the files of a snapshot, then replaces the manifest.

mod retention;
mod source;
mod upload;

use crate::destination::{Destination, ReadManifest};
use crate::error::{Error, Result};
use crate::manifest::{DataFile, FORMAT, Generation, Manifest, is_plain_name};
use crate::signature::{SigningKey, TrustedKey};
use source::Source;
use std::path::Path;
use std::time::SystemTime;

pub use retention::Retention;
pub use upload::Uploaded;

/// Options for publishing.
#[derive(Debug)]
pub struct PublishOptions {
    /// The time of publication.
    pub now: SystemTime,
    /// The key that signs the manifest. A manifest that is signed stays signed.
    pub signing_key: Option<SigningKey>,
    /// The generations that are kept.
    pub retention: Retention,
    /// The name that the snapshot has at followers. `None`, the default, is for the name of the
    /// current generation, or that of the file if there is none.
    pub name: Option<String>,
}

impl PublishOptions {
    /// Returns the default options for a publication at this time.
    #[must_use]
    pub fn at(now: SystemTime) -> Self {
        Self { now, signing_key: None, retention: Retention::default(), name: None }
    }
}

/// What publishing did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The number of the current generation.
    pub generation: u64,
    /// Whether the current generation already had the same contents. Nothing was changed then.
    pub is_unchanged: bool,
    /// Bytes of the files of the generation.
    pub bytes: u64,
    /// Bytes that were uploaded. Files that an earlier generation has are not uploaded again.
    pub uploaded_bytes: u64,
    /// The numbers of generations that the manifest no longer has.
    pub removed: Vec<u64>,
}

/// Publishes a snapshot: verifies it, uploads its files, and replaces the manifest if no other
/// publisher has replaced it since this call began. Then it removes objects that no generation
/// needs.
///
/// # Errors
/// Returns [`Error::Snapshot`] if the file is not a valid snapshot, [`Error::Conflict`] if another
/// publisher was faster, [`Error::SigningKeyMissing`] if the manifest is signed and there is no
/// key, and [`Error::Store`], [`Error::Io`] or [`Error::Manifest`] if the destination cannot be
/// read or written. After all of these, the manifest is as before. If only the removal of objects
/// fails, publishing succeeds, and the next one tries again.
pub async fn publish(
    destination: &Destination,
    file: &Path,
    options: &PublishOptions,
    progress: impl Fn(Uploaded),
) -> Result<Published> {
    let read = destination.manifest(&[]).await?;
    check_key(destination, read.as_ref(), options.signing_key.as_ref())?;
    let old = read.as_ref().map(|read| &read.envelope.manifest);
    let source = Source::read(file, &name_of(file, options, old)?)?;
    if let Some(old) = old
        && old.current().has_contents_of(&source.data_files())
    {
        return Ok(Published {
            generation: old.current,
            is_unchanged: true,
            bytes: old.current().bytes(),
            uploaded_bytes: 0,
            removed: Vec::new(),
        });
    }
    let serial = old.map_or(1, |old| old.serial + 1);
    let (files, uploaded_bytes) =
        upload::upload(destination, &source, old, serial, progress).await?;
    let mut manifest = with_generation(old, serial, (&source, options.now), files);
    let removed = options.retention.apply(&mut manifest, options.now);
    destination.replace_manifest(&manifest, options.signing_key.as_ref(), read.as_ref()).await?;
    // What cannot be removed now is removed after a later publication.
    let _ = retention::remove_objects(destination, old, &manifest, options.now).await;
    Ok(Published {
        generation: manifest.current,
        is_unchanged: false,
        bytes: manifest.current().bytes(),
        uploaded_bytes,
        removed,
    })
}

/// Returns the manifest of a destination. If there are trusted keys, one of them must have signed
/// it.
///
/// # Errors
/// Returns [`Error::NothingPublished`] if there is no manifest, [`Error::Manifest`] or
/// [`Error::Signature`] if it is not valid, and [`Error::Store`] if it cannot be read.
pub async fn generations(destination: &Destination, trusted: &[TrustedKey]) -> Result<Manifest> {
    Ok(existing(destination, trusted).await?.envelope.manifest)
}

async fn existing(destination: &Destination, trusted: &[TrustedKey]) -> Result<ReadManifest> {
    let read = destination.manifest(trusted).await?;
    let none = || Error::NothingPublished { destination: destination.address().to_owned() };
    read.ok_or_else(none)
}

/// Makes another generation the current one: an earlier one, or a later one after that.
///
/// # Errors
/// Returns [`Error::NoGeneration`] if the manifest does not have it, the errors of
/// [`generations`], and those of [`publish`] for replacing the manifest.
pub async fn roll_back(
    destination: &Destination,
    generation: u64,
    key: Option<&SigningKey>,
    trusted: &[TrustedKey],
) -> Result<Manifest> {
    let read = existing(destination, trusted).await?;
    check_key(destination, Some(&read), key)?;
    let mut manifest = read.envelope.manifest.clone();
    if manifest.generation(generation).is_none() {
        return Err(Error::NoGeneration {
            destination: destination.address().to_owned(),
            generation,
            available: manifest.generations.iter().map(|found| found.id).collect(),
        });
    }
    if manifest.current != generation {
        manifest.current = generation;
        manifest.serial += 1;
        destination.replace_manifest(&manifest, key, Some(&read)).await?;
    }
    Ok(manifest)
}

/// Returns the name of the snapshot at followers.
fn name_of(file: &Path, options: &PublishOptions, old: Option<&Manifest>) -> Result<String> {
    let of_file = || file.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let of_last = || old.map(|old| old.current().name().to_owned());
    let name = options.name.clone().or_else(of_last).or_else(of_file).unwrap_or_default();
    if is_plain_name(&name) {
        return Ok(name);
    }
    Err(Error::Contents {
        place: file.display().to_string(),
        expected: "a name in UTF-8 of at most 240 bytes, without a folder, a control character \
                   or a leading dot"
            .to_owned(),
        found: format!("{name:?}"),
    })
}

/// Fails if the manifest is signed and there is no key: followers would refuse its next version.
fn check_key(
    destination: &Destination,
    read: Option<&ReadManifest>,
    key: Option<&SigningKey>,
) -> Result<()> {
    if key.is_none() && read.is_some_and(|read| read.envelope.is_signed) {
        return Err(Error::SigningKeyMissing { manifest: destination.manifest_address() });
    }
    Ok(())
}

/// Returns the next version of the manifest, with a new current generation.
fn with_generation(
    old: Option<&Manifest>,
    serial: u64,
    (source, created): (&Source, SystemTime),
    files: Vec<DataFile>,
) -> Manifest {
    let mut generations = old.map(|old| old.generations.clone()).unwrap_or_default();
    let id = generations.last().map_or(1, |last| last.id + 1);
    generations.push(Generation {
        id,
        created,
        entries: source.entries,
        metadata: source.metadata.clone(),
        files,
    });
    Manifest { format: FORMAT, serial, current: id, generations }
}
