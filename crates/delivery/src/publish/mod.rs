//! Publishing: uploads the files of a snapshot, then replaces the manifest.

mod deltas;
mod retention;
mod scratch;
mod serial;
mod shards;
mod signer;
mod source;
mod stored;
mod upload;
mod uploaded;

use crate::destination::{Destination, ReadManifest};
use crate::error::{Error, Result};
use crate::manifest::{DataFile, FORMAT, Generation, MAX_NUMBER, Manifest, is_plain_name};
use crate::signature::{SigningKey, TrustedKey};
use nuthatch_trace_context::{Instrument, note_error, span};
use signer::Signer;
use source::Source;
use std::path::Path;
use std::time::SystemTime;
use stored::StoredObjects;

pub use retention::Retention;
pub use serial::check_serial;
pub use shards::{ShardUploadOptions, ShardUploads};
pub use upload::Uploaded;
pub use uploaded::UploadedShard;

/// Default of [`PublishOptions::read_back_limit`].
const READ_BACK_LIMIT: u64 = 64 << 20;

/// Options for publishing.
#[derive(Debug)]
pub struct PublishOptions {
    /// The time of publication.
    pub now: SystemTime,
    /// The key that signs the manifest. A manifest that is signed stays signed.
    pub signing_key: Option<SigningKey>,
    /// Other keys that may have signed the manifest before, for a change of the key.
    pub trusted_keys: Vec<TrustedKey>,
    /// The generations that are kept.
    pub retention: Retention,
    /// The name that the snapshot has at followers. `None`, the default, is for the name of the
    /// current generation, or that of the file if there is none.
    pub name: Option<String>,
    /// Maximum length of a file for which a delta from the current generation is made, and of all
    /// its keys and values without compression, in bytes; 1 GiB by default, and 0 for no deltas.
    pub delta_limit: u64,
    /// The serial number of the manifest that may be replaced; 0 is for a destination that has
    /// none. `None`, the default, is for any: that of the manifest when [`publish`] begins.
    pub expected_serial: Option<u64>,
    /// Maximum total bytes of objects that a publication reads to verify them before it uses them
    /// again; 64 MiB by default. Other objects are checked by length only. 0 reads none.
    pub read_back_limit: u64,
}

impl PublishOptions {
    /// Returns the default options for a publication at this time.
    #[must_use]
    pub fn at(now: SystemTime) -> Self {
        Self {
            now,
            signing_key: None,
            trusted_keys: Vec::new(),
            retention: Retention::default(),
            name: None,
            delta_limit: 1 << 30,
            expected_serial: None,
            read_back_limit: READ_BACK_LIMIT,
        }
    }
}

/// The result of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The number of the current generation.
    pub generation: u64,
    /// Whether the current generation already had the same contents. There is no new one then.
    pub is_unchanged: bool,
    /// Bytes of the files of the generation.
    pub bytes: u64,
    /// Bytes that were uploaded, deltas included. Files that an earlier generation has are not
    /// uploaded again.
    pub uploaded_bytes: u64,
    /// Bytes of the deltas that lead to files of the generation.
    pub delta_bytes: u64,
    /// Why files have no delta, if something prevented one. Small files, and those that differ too
    /// much from the last generation, have none and no reason.
    pub delta_failures: Vec<String>,
    /// Why objects of a store that were used again were not verified: they could not be read. They
    /// have the right length.
    pub unread_objects: Vec<String>,
    /// The numbers of generations that the manifest no longer has.
    pub removed: Vec<u64>,
    /// Why objects that no generation needs could not be removed. A later publication tries again.
    pub cleanup_failure: Option<String>,
}

/// Publishes a snapshot: verifies it, uploads its files, and replaces the manifest if no other
/// publisher has replaced it since this call began. Then it removes objects that no generation
/// needs.
///
/// With a signing key, generations of a manifest without a signature are not kept: a signature
/// would vouch for them.
///
/// # Errors
/// Returns [`Error::Snapshot`] if the file is not a valid snapshot, [`Error::Conflict`] if another
/// publisher has replaced the manifest or its serial number is not the
/// [expected](PublishOptions::expected_serial) one, [`Error::SigningKeyMissing`] if the manifest is
/// signed and there is no key, [`Error::Signature`] if another key has signed it, and
/// [`Error::Store`], [`Error::Io`] or [`Error::Manifest`] if the destination cannot be read or
/// written. The manifest is then as before, unless the connection was lost while the manifest was
/// being written, or the folder could not be synced.
pub async fn publish(
    destination: &Destination,
    file: &Path,
    options: &PublishOptions,
    progress: impl Fn(Uploaded),
) -> Result<Published> {
    let span = span!("publish", "internal", url.full = destination.address());
    let published =
        publish_within(destination, (file, &[]), options, progress).instrument(span.clone()).await;
    note_error(&span, &published);
    published
}

async fn publish_within(
    destination: &Destination,
    (file, shards): (&Path, &[UploadedShard]),
    options: &PublishOptions,
    progress: impl Fn(Uploaded),
) -> Result<Published> {
    destination.check_writable()?;
    scratch::remove_leftovers(file, options.now);
    let read = destination.manifest(&[]).await?;
    let signer = Signer::new(options.signing_key.as_ref(), &options.trusted_keys);
    let is_trusted = match &read {
        Some(read) => signer.check(destination, &read.envelope)?,
        None => true,
    };
    let old = read.as_ref().map(|read| &read.envelope.manifest);
    if let Some(expected) = options.expected_serial {
        serial::check(destination, expected, old)?;
    }
    let source = Source::read(file, &name_of(file, options, old)?, shards)?;
    let mut manifest = next_version(destination, old)?;
    if !is_trusted {
        // Anyone with access to the destination can have added them.
        manifest.generations.clear();
    }
    let (files, mut stored) = (source.data_files(), StoredObjects::list(destination, old).await?);
    uploaded::forget_replaced(&mut stored, &manifest, shards);
    let of_manifest = (&manifest, &files[..]);
    let unread_objects =
        stored.forget_damaged(destination, of_manifest, options.read_back_limit).await;
    let is_unchanged = manifest.generation(manifest.current).is_some_and(|current| {
        current.has_contents_of(&files) && current.files.iter().all(|file| stored.has(file))
    });
    let (mut uploaded_bytes, mut delta_failures) = (0, Vec::new());
    if !is_unchanged {
        let (mut files, uploaded) =
            upload::upload(destination, &source, (&mut manifest, &stored), progress)
                .instrument(span!("upload", "client"))
                .await?;
        let deltas = deltas::add(destination, &source, &manifest, &mut files, options).await?;
        uploaded_bytes = uploaded + deltas.uploaded_bytes;
        delta_failures = deltas.failures;
        add_generation(&mut manifest, (&source, options.now), files);
    }
    options.retention.apply(&mut manifest, options.now);
    let removed = removed(old, &manifest);
    let has_signature = read.as_ref().is_some_and(|read| signer.has_signed(&read.envelope));
    if !is_unchanged || !removed.is_empty() || !has_signature {
        let mode = source.mode();
        destination
            .replace_manifest(&manifest, signer.key, read.as_ref(), Some(mode))
            .instrument(span!("replace manifest", "client"))
            .await?;
    }
    let manifests = (old, &manifest);
    let cleanup = retention::remove_objects(destination, &stored, manifests, options.now).await;
    Ok(Published {
        generation: manifest.current,
        is_unchanged,
        bytes: manifest.current().bytes(),
        uploaded_bytes,
        delta_bytes: manifest.current().delta_bytes(),
        delta_failures,
        unread_objects,
        removed,
        cleanup_failure: cleanup.err().map(|error| error.to_string()),
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

/// Makes another generation the current one, older or newer.
///
/// # Errors
/// Returns [`Error::GenerationNotFound`] if the manifest does not have it, the errors of
/// [`generations`], and those of [`publish`] for replacing the manifest.
pub async fn roll_back(
    destination: &Destination,
    generation: u64,
    key: Option<&SigningKey>,
    trusted: &[TrustedKey],
) -> Result<Manifest> {
    destination.check_writable()?;
    let read = existing(destination, &[]).await?;
    let signer = Signer::new(key, trusted);
    if !signer.check(destination, &read.envelope)? {
        let manifest = destination.manifest_address();
        return Err(Error::Signature { manifest, found: "none" });
    }
    let old = &read.envelope.manifest;
    if old.generation(generation).is_none() {
        return Err(Error::GenerationNotFound {
            destination: destination.address().to_owned(),
            generation,
            available: old.generations.iter().map(|found| found.id).collect(),
        });
    }
    if old.current == generation && signer.has_signed(&read.envelope) {
        return Ok(old.clone());
    }
    let mut manifest = next_version(destination, Some(old))?;
    manifest.current = generation;
    destination.replace_manifest(&manifest, key, Some(&read), None).await?;
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

/// Returns whether a snapshot has the contents of a generation. Its name does not count.
///
/// # Errors
/// Returns [`Error::Snapshot`] if the file is not a valid snapshot, and [`Error::Io`] if it cannot
/// be read.
pub fn has_contents(generation: &Generation, file: &Path) -> Result<bool> {
    let source = Source::read(file, generation.name(), &[])?;
    Ok(generation.has_contents_of(&source.data_files()))
}

/// Returns the next version of a manifest, with the same generations.
fn next_version(destination: &Destination, old: Option<&Manifest>) -> Result<Manifest> {
    let empty = || Manifest { format: FORMAT, serial: 0, current: 0, generations: Vec::new() };
    let mut manifest = old.cloned().unwrap_or_else(empty);
    manifest.serial += 1;
    // Checked here, before anything is uploaded.
    if manifest.serial > MAX_NUMBER {
        return Err(Error::Manifest {
            manifest: destination.manifest_address(),
            expected: "a serial number below 2^53 - 1".to_owned(),
            found: "that number".to_owned(),
        });
    }
    Ok(manifest)
}

/// Adds a generation and makes it the current one. Its number is the serial number of the manifest,
/// so that it is never used again, whatever generations are removed.
fn add_generation(
    manifest: &mut Manifest,
    (source, created): (&Source, SystemTime),
    files: Vec<DataFile>,
) {
    manifest.current = manifest.serial;
    manifest.generations.push(Generation {
        id: manifest.serial,
        created,
        entries: source.entries,
        metadata: source.metadata.clone(),
        files,
    });
}

/// Returns the numbers of the generations that the new manifest no longer has.
fn removed(old: Option<&Manifest>, new: &Manifest) -> Vec<u64> {
    let ids = old.into_iter().flat_map(|old| &old.generations).map(|generation| generation.id);
    ids.filter(|id| new.generation(*id).is_none()).collect()
}
