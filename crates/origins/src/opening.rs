//! Opens an object: asks its origin for the current version, or the cache while the origin is
//! unavailable.

use crate::access::Access;
use crate::address::{Address, Place};
use crate::attempts::{Attempts, Fault};
use crate::counts::{Count, Tally};
use crate::engine::{Asked, Engine};
use crate::error::{Error, Result};
use crate::origin::{Head, Origin, plain};
use crate::recorded::Known;
use crate::settings::Freshness;
use crate::version::Version;
use bytes::{Bytes, BytesMut};
use nuthatch_chunks::TaskChunks;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout_at};

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
    // What a file is costs nothing to find out.
    let local = matches!(address.place, Place::File(_));
    let site = address.place.site();
    let (origin, plain) = if engine.clients.ready_for(&address.place) {
        engine.clients.origin(address, access)?
    } else {
        let (making, access) = (engine.clone(), access.clone());
        let make = move || making.clients.origin(address, &access);
        let task = Task(engine.spawn(async { spawn_blocking(make).await })?);
        task.end().await?.map_err(|_| Error::closed())??
    };
    let asked = Asked { address: text.to_owned(), shown: access.headers.clone() };
    let tally = Tally::default();
    let mut opening =
        Opening { engine: engine.clone(), origin, address: plain, asked, tasks, tally };
    if let Some(head) = engine.believed_head(&opening.asked).filter(|_| !local) {
        return Ok(Version::new(opening, (head, None), None));
    }
    let asking = Asking { opening, site, freshness };
    let task = Task(engine.spawn(asking.run())?);
    let (asking, answer) = task.end().await?;
    opening = asking.opening;
    match answer? {
        Found::Fresh(answer) => {
            if answer.1.is_none() && !local {
                engine.note_head(opening.asked.clone(), &answer.0);
            }
            let version = Version::new(opening, answer, None);
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
        return Err(refused(format!("the folder of the cache cannot be opened{reason}, so it is")));
    };
    let known = engine.recorded.recall(&address, folder).await;
    let known = known.ok_or_else(|| refused("what the object is, is".to_owned()))?;
    if let Some(max) = freshness.max_stale.filter(|max| known.age() > *max) {
        let secs = known.age().as_secs();
        let found = format!("a version that was checked at most {} s ago is", max.as_secs());
        return Err(refused(format!("the version there was checked {secs} s ago; {found}")));
    }
    let asked = Asked { address: text.to_owned(), shown: Vec::new() };
    let (engine, origin) = (engine.clone(), Origin::Offline);
    let opening = Opening { engine, origin, address, asked, tasks, tally: Tally::default() };
    Ok(stale(opening, known))
}

/// A version that the origin did not confirm.
fn stale(opening: Opening, known: Known) -> Version {
    opening.count(Count::Stale, 1);
    Version::new(opening, (known.head, None), Some(known.checked))
}

/// An object that is being opened.
pub(crate) struct Opening {
    pub(crate) engine: Arc<Engine>,
    pub(crate) origin: Origin,
    /// Without secrets.
    pub(crate) address: String,
    pub(crate) asked: Asked,
    /// The folder, if there is one that can be used.
    pub(crate) tasks: Option<TaskChunks>,
    pub(crate) tally: Tally,
}

impl Opening {
    fn count(&self, count: Count, number: u64) {
        self.tally.add(count, number);
        self.engine.count(count, number);
    }
}

/// A task that ends with whoever waits for it.
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

/// The task that asks.
struct Asking {
    opening: Opening,
    /// What cannot be reached if the origin cannot.
    site: String,
    freshness: Freshness,
}

/// What the origin said, and all bytes, if it does not tell how many there are.
pub(crate) type Answer = (Head, Option<Bytes>);

/// What an object is opened as.
enum Found {
    Fresh(Answer),
    /// The origin is away, and the cache has a version that is recent enough.
    Stale(Known),
}

impl Asking {
    async fn run(self) -> (Self, Result<Found>) {
        let found = self.ask().await;
        (self, found)
    }

    /// Asks the origin. Where the cache has a version that may be used meanwhile, one attempt is
    /// all, and it has a limited time.
    async fn ask(&self) -> Result<Found> {
        let Opening { engine, address, .. } = &self.opening;
        if engine.is_away(&self.site)
            && let Some(known) = self.known().await
        {
            return Ok(Found::Stale(known));
        }
        let deadline = Instant::now() + engine.settings.check_within;
        let mut looked = false;
        let mut attempts = Attempts::new(&engine.settings, address);
        loop {
            self.opening.count(Count::Checks, 1);
            self.opening.count(Count::Retries, u64::from(attempts.again()));
            let mut once = pin!(self.once());
            let answered = if looked {
                Some(once.as_mut().await)
            } else {
                timeout_at(deadline, once.as_mut()).await.ok()
            };
            if !looked && is_unavailable(answered.as_ref()) {
                looked = true;
                if let Some(known) = self.known().await {
                    if is_silent(answered.as_ref()) {
                        engine.note_reached(&self.site, false);
                    }
                    return Ok(Found::Stale(known));
                }
            }
            let answered = match answered {
                Some(answered) => answered,
                None => once.await,
            };
            match answered {
                Ok(answer) => {
                    engine.note_reached(&self.site, true);
                    return Ok(Found::Fresh(answer));
                }
                Err(fault) => tokio::time::sleep(attempts.failed(fault)?).await,
            }
        }
    }

    /// Returns the version that the cache recorded, if it may be used while the origin is away.
    async fn known(&self) -> Option<Known> {
        let Opening { engine, address, tasks, .. } = &self.opening;
        let known = engine.recorded.recall(address, tasks.as_ref()?).await?;
        let allowed = known.head.stale_if_error.map(Duration::from_secs);
        let max = self.freshness.max_stale.or(allowed)?;
        let age = known.age();
        if age > max {
            return None;
        }
        tracing::info!(target: "nuthatch::chunks", %address, age_s = age.as_secs(),
            "the origin is away; the version in the cache is used");
        Some(known)
    }

    async fn once(&self) -> Result<Answer, Fault> {
        let (head, body) = self.opening.engine.in_time(self.opening.origin.head()).await?;
        let Some(mut body) = body else { return Ok((head, None)) };
        let mut all = BytesMut::new();
        while let Some(bytes) = self.opening.engine.in_time(body.next()).await? {
            self.check_room(all.len() + bytes.len())?;
            all.extend_from_slice(&bytes);
            self.opening.count(Count::Fetched, bytes.len() as u64);
        }
        Ok((head, Some(all.freeze())))
    }

    fn check_room(&self, len: usize) -> Result<()> {
        let most = self.opening.engine.settings.unmeasured_most;
        if len as u64 <= most {
            return Ok(());
        }
        let expected = format!("a length, or at most {most} bytes");
        let (address, found) = (self.opening.address.clone(), "no length, and more bytes".into());
        Err(Error::Answer { address, expected, found })
    }
}

/// Returns whether an attempt failed or timed out because the origin is unavailable.
fn is_unavailable<T>(answered: Option<&Result<T, Fault>>) -> bool {
    match answered {
        None => true,
        Some(answered) => answered.as_ref().is_err_and(Fault::is_origin_unavailable),
    }
}

/// Returns whether the origin sent no answer at all.
fn is_silent<T>(answered: Option<&Result<T, Fault>>) -> bool {
    answered.is_none_or(|answered| answered.as_ref().is_err_and(Fault::is_silence))
}
