//! Files that are built from earlier ones and deltas, instead of being fetched.

use super::bandwidth::RangeLimits;
use super::fetch::Fetch;
use super::folder::Folder;
use crate::delta::{self, Limits, Rebuild};
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::{DataFile, Delta, Generation, Manifest};
use blake3::Hash;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Semaphore, oneshot};

/// Maximum number of deltas that lead to a file.
const MAX_CHAIN: usize = 16;
/// A process builds one file at a time, so that its limits hold however many folders it has.
static BUILDS: Semaphore = Semaphore::const_new(1);
/// The number of builds that were started, which makes the names of their files unique.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// The nice value of a build: the lowest priority.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// Options for building files from deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaOptions {
    /// Maximum length of a file that is built, and of all its keys and values without compression,
    /// in bytes; 1 GiB by default, and 0 for none.
    pub limit: u64,
    /// Number of threads of a build; 1 by default. They have the lowest priority. A process builds
    /// one file at a time.
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
    base_hash: String,
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
    /// half of its bytes, and is permitted. Deltas that cannot be used are left out.
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
            if bytes > delta::max_bytes(file.bytes) || failures.0.contains(&delta.blake3) {
                return None;
            }
            deltas.push(delta);
            if let Some(base) = here.files.iter().find(|base| base.blake3 == delta.from) {
                let is_usable = base.bytes <= self.options.limit && folder.has_file(here, base);
                let path = folder.file_of(here, base);
                return is_usable.then(|| Plan {
                    base: path,
                    base_hash: base.blake3.clone(),
                    deltas,
                });
            }
            target = &delta.from;
        }
        None
    }
}

/// The hashes of deltas that cannot be used, so that none is tried twice.
#[derive(Debug, Default)]
pub(super) struct Failures(HashSet<String>);

impl Failures {
    /// Removes the hashes of deltas that a manifest no longer has, so that they do not accumulate.
    pub(super) fn retain_of(&mut self, deltas: &Deltas<'_>) {
        let listed: HashSet<_> = deltas.by_target.values().map(|delta| &delta.blake3).collect();
        self.0.retain(|hash| listed.contains(hash));
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
    /// Returns an error of a full disk while a delta is fetched.
    pub(super) async fn run(
        &self,
        file: &DataFile,
        (destination, folder): (&Destination, &Folder),
        (options, range_limits): (DeltaOptions, RangeLimits<'_>),
        failures: &mut Failures,
    ) -> Result<Built> {
        let mut fetched_bytes = 0;
        let from = (destination, folder);
        let fetched = self.fetch(from, range_limits, &mut fetched_bytes).await;
        let paths: Vec<_> = self.deltas.iter().map(|d| folder.partial_of(&d.blake3)).collect();
        let built = match fetched {
            Ok(()) => self.build(file, folder, paths.clone(), options).await,
            Err(error) if error.is_full_disk() => return Err(error),
            Err(error) => Err(error),
        };
        let Err(error) = built else {
            remove(&paths);
            return Ok(Built::Complete(fetched_bytes));
        };
        // If the destination does not answer now, the delta is fetched by a later check.
        if !matches!(error, Error::Store { .. }) {
            remove(&paths);
            failures.0.extend(self.deltas.iter().map(|delta| delta.blake3.clone()));
        }
        Ok(Built::Failed(error.to_string(), fetched_bytes))
    }

    /// Fetches the deltas into their partial files, and adds up the bytes.
    async fn fetch(
        &self,
        (destination, folder): (&Destination, &Folder),
        range_limits: RangeLimits<'_>,
        fetched_bytes: &mut u64,
    ) -> Result<()> {
        for delta in &self.deltas {
            let object = DataFile {
                name: String::new(),
                bytes: delta.bytes,
                blake3: delta.blake3.clone(),
                object: delta.object.clone(),
                delta: None,
            };
            let fetch = Fetch { destination, folder, file: &object };
            *fetched_bytes += fetch.run(range_limits, |_| {}).await?;
        }
        Ok(())
    }

    /// Builds the file under another name, and renames it to its partial file.
    async fn build(
        &self,
        file: &DataFile,
        folder: &Folder,
        deltas: Vec<PathBuf>,
        options: DeltaOptions,
    ) -> Result<()> {
        let _permit = BUILDS.acquire().await;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}.{}-{number}", file.blake3, std::process::id());
        let (to, partial) = (folder.partial_of(&name), folder.partial(file));
        let hash = |text: &str| Hash::from_hex(text).expect("the manifest was checked");
        let hashes = (hash(&self.base_hash), hash(&file.blake3));
        build_apart((self.base.clone(), deltas), hashes, options, to.clone()).await?;
        std::fs::rename(&to, &partial).map_err(|e| Error::io(&to, "rename", e))
    }
}

fn remove(paths: &[PathBuf]) {
    for path in paths {
        let _ = std::fs::remove_file(path);
    }
}

/// Builds a file on a thread of the lowest priority. Dropping the returned future cancels the
/// build.
async fn build_apart(
    (base, deltas): (PathBuf, Vec<PathBuf>),
    (from, to_hash): (Hash, Hash),
    options: DeltaOptions,
    to: PathBuf,
) -> Result<()> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let cancel = CancelOnDrop(Arc::clone(&cancelled));
    let (done, result) = oneshot::channel();
    let DeltaOptions { limit: entry_bytes, threads, memory } = options;
    let limits = Limits { threads, memory, entry_bytes };
    let failed_to = to.clone();
    let failed = move |e| Error::io(&failed_to, "start a thread for", e);
    let run = move || {
        lower_priority();
        let (base, deltas, cancelled) = (&*base, &*deltas, &*cancelled);
        let rebuild = Rebuild { base, deltas, limits, from, to: to_hash, cancelled };
        // The receiver is gone if the build was cancelled.
        if done.send(rebuild.run(&to)).is_err() {
            let _ = std::fs::remove_file(&to);
        }
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

#[cfg(test)]
mod tests {
    use super::{DeltaOptions, Deltas, Failures};
    use crate::manifest::Manifest;

    #[test]
    fn failures_of_deltas_that_a_manifest_no_longer_has_are_forgotten() {
        let [file, from, delta] = ["a", "b", "c"].map(|digit| digit.repeat(64));
        let text = format!(
            r#"{{"format":1,"serial":1,"current":1,"generations":[{{"id":1,
            "created":"2026-11-27T09:30:00Z","entries":1,"metadata":{{}},"files":[{{"name":"a.nut",
            "bytes":9,"blake3":"{file}","object":"a-1","delta":{{"from":"{from}","bytes":1,
            "blake3":"{delta}","object":"c-1"}}}}]}}]}}"#
        );
        let manifest = Manifest::decode(&text, "a test").expect("a manifest");
        let mut failures = Failures([delta.clone(), from].into());
        failures.retain_of(&Deltas::new(&manifest, DeltaOptions::default()));
        assert_eq!(failures.0, [delta].into());
    }
}
