//! Files that are built from earlier ones and deltas, instead of being fetched.

use super::bandwidth::RangeLimits;
use super::fetch::Fetch;
use super::folder::Folder;
use crate::delta::{self, Limits, Rebuild};
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::{DataFile, Delta, Generation, Manifest};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// Maximum number of deltas that lead to a file.
const MAX_CHAIN: usize = 16;
/// Number of attempts to fetch a delta.
const MAX_ATTEMPTS: u32 = 2;
/// The nice value of a build: the lowest priority.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// Options for building files from deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaOptions {
    /// Maximum length of a file that is built, in bytes; 1 GiB by default, and 0 for none.
    pub limit: u64,
    /// Number of threads of a build; 1 by default. They have the lowest priority.
    pub threads: usize,
    /// Memory budget of a build in bytes; 256 MiB by default, and at least 32 MiB.
    pub memory: usize,
}

impl Default for DeltaOptions {
    fn default() -> Self {
        Self { limit: 1 << 30, threads: 1, memory: 256 << 20 }
    }
}

/// How a file is built.
pub(super) struct Plan<'m> {
    /// The file in the folder that it is built from.
    base: PathBuf,
    /// The deltas that lead to it, the newest one first.
    pub(super) deltas: Vec<&'m Delta>,
}

/// The deltas of a manifest, by the hash of the file that they lead to.
pub(super) struct Deltas<'m> {
    by_target: HashMap<&'m str, &'m Delta>,
    options: DeltaOptions,
}

impl<'m> Deltas<'m> {
    pub(super) fn new(manifest: &'m Manifest, options: DeltaOptions) -> Self {
        let files = manifest.generations.iter().flat_map(|generation| &generation.files);
        let by_target = files.filter_map(|file| Some((&*file.blake3, file.delta.as_ref()?)));
        Self { by_target: by_target.collect(), options }
    }

    /// Returns how a file is built from one of a generation in the folder, if that takes at most
    /// half of its bytes, and is permitted. Deltas that have failed too often are not used.
    pub(super) fn plan(
        &self,
        file: &DataFile,
        (folder, here): (&Folder, &Generation),
        failures: &Failures,
    ) -> Option<Plan<'m>> {
        if file.bytes > self.options.limit || folder.has_partial(file) {
            return None;
        }
        let (mut target, mut bytes, mut deltas) = (&*file.blake3, 0_u64, Vec::new());
        while deltas.len() < MAX_CHAIN {
            let delta = *self.by_target.get(target)?;
            bytes = bytes.saturating_add(delta.bytes);
            if bytes > delta::max_bytes(file.bytes) || failures.exclude(delta) {
                return None;
            }
            deltas.push(delta);
            if let Some(base) = here.files.iter().find(|base| base.blake3 == delta.from) {
                let is_usable = base.bytes <= self.options.limit && folder.has_file(here, base);
                return is_usable.then(|| Plan { base: folder.file_of(here, base), deltas });
            }
            target = &delta.from;
        }
        None
    }
}

/// The deltas that have failed, by their hash, with the number of attempts.
#[derive(Debug, Default)]
pub(super) struct Failures(HashMap<String, u32>);

impl Failures {
    fn exclude(&self, delta: &Delta) -> bool {
        self.0.get(&delta.blake3).is_some_and(|attempts| *attempts >= MAX_ATTEMPTS)
    }

    /// Records a failed attempt. Returns whether the delta can be tried again.
    fn record(&mut self, delta: &Delta, can_recur: bool) -> bool {
        let attempts = self.0.entry(delta.blake3.clone()).or_default();
        *attempts = if can_recur { *attempts + 1 } else { MAX_ATTEMPTS };
        *attempts < MAX_ATTEMPTS
    }
}

/// The result of a plan.
pub(super) enum Built {
    /// The file is complete in its partial file. This many bytes were fetched.
    Complete(u64),
    /// Why it could not be built, and how many bytes were fetched.
    Failed(String, u64),
}

impl Plan<'_> {
    /// Fetches the deltas and builds the file as its partial file.
    ///
    /// # Errors
    /// Returns [`Error::Store`] if a delta could not be fetched and is to be tried again, and an
    /// error of a full disk.
    pub(super) async fn run(
        &self,
        file: &DataFile,
        (destination, folder): (&Destination, &Folder),
        (options, range_limits): (DeltaOptions, RangeLimits<'_>),
        failures: &mut Failures,
    ) -> Result<Built> {
        let mut fetched_bytes = 0;
        let from = (destination, folder);
        let fetched = self.fetch(from, range_limits, &mut fetched_bytes, failures).await?;
        let paths: Vec<_> = self.deltas.iter().map(|d| folder.partial_of(&d.blake3)).collect();
        let built = match fetched {
            Ok(()) => build(self.base.clone(), paths.clone(), options, folder.partial(file)).await,
            Err(error) => Err(error),
        };
        for path in paths {
            let _ = std::fs::remove_file(path);
        }
        Ok(match built {
            Ok(()) => Built::Complete(fetched_bytes),
            Err(error) => {
                failures.record(self.deltas[0], false);
                Built::Failed(error.to_string(), fetched_bytes)
            }
        })
    }

    /// Fetches the deltas into their partial files, and adds up the bytes. Returns why one cannot
    /// be used.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    async fn fetch(
        &self,
        (destination, folder): (&Destination, &Folder),
        range_limits: RangeLimits<'_>,
        fetched_bytes: &mut u64,
        failures: &mut Failures,
    ) -> Result<Result<()>> {
        for delta in &self.deltas {
            let object = DataFile {
                name: String::new(),
                bytes: delta.bytes,
                blake3: delta.blake3.clone(),
                object: delta.object.clone(),
                delta: None,
            };
            let fetch = Fetch { destination, folder, file: &object };
            match fetch.run(range_limits, |_| {}).await {
                Ok(bytes) => *fetched_bytes += bytes,
                Err(error) => {
                    let can_recur = matches!(error, Error::Store { .. });
                    if error.is_full_disk() || failures.record(delta, can_recur) {
                        return Err(error);
                    }
                    return Ok(Err(error));
                }
            }
        }
        Ok(Ok(()))
    }
}

/// Builds a file on a thread of the lowest priority. Dropping the returned future cancels the
/// build.
async fn build(
    base: PathBuf,
    deltas: Vec<PathBuf>,
    options: DeltaOptions,
    to: PathBuf,
) -> Result<()> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let cancel = CancelOnDrop(Arc::clone(&cancelled));
    let (done, result) = oneshot::channel();
    let limits = Limits { threads: options.threads, memory: options.memory };
    let failed_to = to.clone();
    let failed = move |e| Error::io(&failed_to, "start a thread for", e);
    let run = move || {
        lower_priority();
        let rebuild = Rebuild { base: &base, deltas: &deltas, limits, cancelled: &cancelled };
        // The receiver is gone if the build was cancelled.
        let _ = done.send(rebuild.run(&to));
    };
    std::thread::Builder::new().name("delta".into()).spawn(run).map_err(failed)?;
    let built = result.await.unwrap_or_else(|_| {
        Err(Error::Contents {
            place: "the build of a file from a delta".to_owned(),
            expected: "a result".to_owned(),
            found: "a panic".to_owned(),
        })
    });
    drop(cancel);
    built
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sets the lowest priority for this thread, and for those that it starts. On Linux, a nice
/// value is that of a thread.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // Fails only where a sandbox forbids it; the build then competes as other threads do.
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
