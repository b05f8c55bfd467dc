//! Opens an object: requests the current version from its origin, or uses the recorded one while
//! the origin is unavailable.

use crate::access::Access;
use crate::address::{Address, Place};
use crate::counts::{Count, Tally};
use crate::engine::recorded::RecordedVersion;
use crate::engine::{Engine, ObjectRequest};
use crate::error::{Error, Result};
use crate::origin::{Origin, plain};
use crate::reading::version::{HeadResponse, Opening, Version};
use crate::retry::{Attempts, Fault};
use crate::settings::{Freshness, Settings};
use bytes::BytesMut;
use nuthatch_chunks::TaskChunks;
use nuthatch_trace_context::{Instrument, Span, note_error, span};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// Opens an object.
pub(crate) async fn open(
    engine: &Arc<Engine>,
    text: &str,
    access: &Access,
    freshness: Freshness,
) -> Result<Version> {
    let address = Address::parse(text)?;
    engine.check_process()?;
    let tasks = engine.tasks().await;
    if freshness.offline {
        return open_offline(engine, address, text, freshness, tasks).await;
    }
    // Checking a local file is cheap.
    let local = matches!(address.place, Place::File(_));
    let site = address.place.site();
    let (origin, plain) = if engine.clients.ready_for(&address.place) {
        engine.clients.origin(address, access)?
    } else {
        let (shared, access) = (engine.clone(), access.clone());
        let make = move || shared.clients.origin(address, &access);
        let task = Task(engine.spawn(async { spawn_blocking(make).await })?);
        task.end().await?.map_err(|_| Error::closed())??
    };
    let request = ObjectRequest { address: text.to_owned(), headers: access.headers.clone() };
    let tally = Tally::default();
    let mut opening =
        Opening { engine: engine.clone(), origin, address: plain, request, tasks, tally };
    if let Some(head) = engine.recent_head(&opening.request).filter(|_| !local) {
        return Ok(Version::new(opening, (head, None), None));
    }
    let span = span!("origin check", "client", url.full = opening.address.as_str());
    let check = VersionCheck { opening, site, freshness };
    let task = Task(engine.spawn(check.run().instrument(span))?);
    let (check, response) = task.end().await?;
    opening = check.opening;
    match response? {
        Found::Fresh(response) => {
            if response.1.is_none() && !local {
                engine.note_head(opening.request.clone(), &response.0);
            }
            let version = Version::new(opening, response, None);
            version.record();
            Ok(version)
        }
        Found::Stale(known) => Ok(stale(opening, known)),
    }
}

/// Opens an object as the cache last recorded it, without its origin.
async fn open_offline(
    engine: &Arc<Engine>,
    address: Address,
    text: &str,
    freshness: Freshness,
    tasks: Option<TaskChunks>,
) -> Result<Version> {
    let address = plain(address);
    let refused = |missing: String| Error::Offline { address: address.clone(), missing };
    let Some(folder) = &tasks else {
        let reason =
            engine.folder.problem().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(refused(format!("the folder of the cache cannot be opened{reason}")));
    };
    let known = engine.recorded.recall(&address, folder).await;
    let known =
        known.ok_or_else(|| refused("the cache has no metadata of this object".to_owned()))?;
    if let Some(max) = freshness.max_stale.filter(|max| known.age() > *max) {
        let secs = known.age().as_secs();
        let max = max.as_secs();
        let missing = format!(
            "expected a version that the origin confirmed at most {max} s ago, found one that it \
             confirmed {secs} s ago"
        );
        return Err(refused(missing));
    }
    let request = ObjectRequest { address: text.to_owned(), headers: Vec::new() };
    let (engine, origin) = (engine.clone(), Origin::Offline);
    let opening = Opening { engine, origin, address, request, tasks, tally: Tally::default() };
    Ok(stale(opening, known))
}

/// Returns a version that the origin did not confirm.
fn stale(opening: Opening, known: RecordedVersion) -> Version {
    opening.count(Count::Stale, 1);
    Version::new(opening, (known.head, None), Some(known.confirmed_at))
}

/// A task that is aborted when this is dropped.
struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    async fn end(mut self) -> Result<T> {
        (&mut self.0).await.map_err(|_| Error::closed())
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The task that checks the version at the origin.
struct VersionCheck {
    opening: Opening,
    /// The server, bucket or folder of the object.
    site: String,
    freshness: Freshness,
}

/// The version with which an object is opened.
enum Found {
    Fresh(HeadResponse),
    /// The origin is unavailable, and the cache has a version that is recent enough.
    Stale(RecordedVersion),
}

impl VersionCheck {
    async fn run(self) -> (Self, Result<Found>) {
        let found = self.check().await;
        note_error(&Span::current(), &found);
        (self, found)
    }

    /// Requests the version from the origin, or from the cache while the origin is unavailable.
    async fn check(&self) -> Result<Found> {
        let Opening { engine, address, .. } = &self.opening;
        if engine.is_unavailable(&self.site)
            && let Some(known) = self.known().await
        {
            return Ok(Found::Stale(known));
        }
        let attempt = |is_retry| self.attempt(is_retry);
        let recall = |is_silent| self.recall(is_silent);
        let found = check_or_recall(&engine.settings, address, attempt, recall).await?;
        if matches!(found, Found::Fresh(_)) {
            engine.note_reached(&self.site, true);
        }
        Ok(found)
    }

    /// Requests the version from the origin once.
    async fn attempt(&self, is_retry: bool) -> Result<HeadResponse, Fault> {
        self.opening.count(Count::Checks, 1);
        self.opening.count(Count::Retries, u64::from(is_retry));
        self.once().await
    }

    /// Returns the version to use in place of a response. Records that the origin is unavailable if
    /// it sent no response at all.
    async fn recall(&self, is_silent: bool) -> Option<RecordedVersion> {
        let known = self.known().await?;
        if is_silent {
            self.opening.engine.note_reached(&self.site, false);
        }
        Some(known)
    }

    /// Returns the recorded version, if it may be used while the origin is unavailable.
    async fn known(&self) -> Option<RecordedVersion> {
        let Opening { engine, address, tasks, .. } = &self.opening;
        let known = engine.recorded.recall(address, tasks.as_ref()?).await?;
        let allowed = known.head.stale_if_error.map(Duration::from_secs);
        let max = self.freshness.max_stale.or(allowed)?;
        let age = known.age();
        if age > max {
            return None;
        }
        tracing::info!(target: "nuthatch::chunks", %address, age_s = age.as_secs(),
            "the origin is unavailable; the version in the cache is used");
        Some(known)
    }

    async fn once(&self) -> Result<HeadResponse, Fault> {
        let (head, body) =
            self.opening.engine.with_read_timeout(self.opening.origin.head()).await?;
        let Some(mut body) = body else { return Ok((head, None)) };
        let mut all = BytesMut::new();
        while let Some(bytes) = self.opening.engine.with_read_timeout(body.next()).await? {
            self.check_room(all.len() + bytes.len())?;
            all.extend_from_slice(&bytes);
            self.opening.count(Count::Fetched, bytes.len() as u64);
        }
        Ok((head, Some(all.freeze())))
    }

    fn check_room(&self, len: usize) -> Result<()> {
        let max = self.opening.engine.settings.max_unsized_len;
        if len as u64 <= max {
            return Ok(());
        }
        let expected = format!("a length, or a body of at most {max} bytes");
        let (address, found) = (self.opening.address.clone(), "no length and a longer body".into());
        Err(Error::Response { address, expected, found })
    }
}

/// Repeats an attempt until the origin responds. The first time that the origin is unavailable, or
/// has not responded within [`Settings::check_timeout`], the version that `recall` returns is used,
/// if it returns one.
///
/// Each attempt has the whole timeout; the delays between attempts do not count.
async fn check_or_recall<A, R>(
    settings: &Settings,
    address: &str,
    attempt: impl Fn(bool) -> A,
    recall: impl Fn(bool) -> R,
) -> Result<Found>
where
    A: Future<Output = Result<HeadResponse, Fault>>,
    R: Future<Output = Option<RecordedVersion>>,
{
    let mut recalled = false;
    let mut attempts = Attempts::new(settings, address);
    loop {
        let mut check = pin!(attempt(attempts.is_retry()));
        let answered = if recalled {
            Some(check.as_mut().await)
        } else {
            timeout(settings.check_timeout, check.as_mut()).await.ok()
        };
        if !recalled && is_unavailable(answered.as_ref()) {
            recalled = true;
            if let Some(known) = recall(is_silent(answered.as_ref())).await {
                return Ok(Found::Stale(known));
            }
        }
        let answered = match answered {
            Some(answered) => answered,
            None => check.await,
        };
        match answered {
            Ok(answer) => return Ok(Found::Fresh(answer)),
            Err(fault) => tokio::time::sleep(attempts.failed(fault)?).await,
        }
    }
}

/// Returns whether an attempt failed or timed out because the origin is unavailable.
fn is_unavailable<T>(answered: Option<&Result<T, Fault>>) -> bool {
    match answered {
        None => true,
        Some(answered) => answered.as_ref().is_err_and(Fault::is_origin_unavailable),
    }
}

/// Returns whether the origin sent no response at all.
fn is_silent<T>(answered: Option<&Result<T, Fault>>) -> bool {
    answered.is_none_or(|answered| answered.as_ref().is_err_and(Fault::is_silence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Head;
    use crate::retry::Cause;
    use std::cell::Cell;
    use std::time::SystemTime;

    /// Opens an object whose origin responds with these statuses one after the other, and then not
    /// at all. The cache has a version. Returns what was found, and the number of attempts.
    async fn open(statuses: &[u16]) -> (Result<Found>, usize) {
        let retry_delay = Duration::from_secs(10);
        let settings = Settings::new()
            .check_timeout(retry_delay / 10)
            .retry_delays(retry_delay, retry_delay)
            .retries(2);
        let attempts = Cell::new(0);
        let attempt = |is_retry| {
            let at = attempts.replace(attempts.get() + 1);
            assert_eq!(is_retry, at > 0);
            async move {
                // A response takes some time.
                tokio::time::sleep(Duration::from_millis(1)).await;
                match statuses.get(at) {
                    None => std::future::pending().await,
                    Some(200) => Ok((Head::default(), None)),
                    Some(status) => {
                        Err(Fault::Transient { cause: Cause::Status(*status), retry_after: None })
                    }
                }
            }
        };
        let recall = |_| async {
            Some(RecordedVersion { head: Head::default(), confirmed_at: SystemTime::UNIX_EPOCH })
        };
        let found = check_or_recall(&settings, "address", attempt, recall).await;
        (found, attempts.get())
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_after_a_complaint_do_not_count_as_silence_of_the_origin() {
        for complaint in [408, 425, 529] {
            let (found, attempts) = open(&[complaint; 3]).await;
            let error = found.err().expect("the origin has answered");
            assert!(matches!(error, Error::Status { .. }), "{error}");
            assert_eq!((error.code(), attempts), ("status", 3), "{complaint}");
            let (found, attempts) = open(&[complaint, complaint, 200]).await;
            assert!(matches!(found, Ok(Found::Fresh(_))) && attempts == 3, "{complaint}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_that_is_unavailable_after_a_complaint_is_not_asked_again() {
        for statuses in [&[503][..], &[], &[408, 503], &[408]] {
            let (found, attempts) = open(statuses).await;
            let silent = usize::from(statuses.last() != Some(&503));
            assert!(matches!(found, Ok(Found::Stale(_))), "{statuses:?}");
            assert_eq!(attempts, statuses.len() + silent, "{statuses:?}");
        }
    }
}
