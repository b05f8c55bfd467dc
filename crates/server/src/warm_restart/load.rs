//! Restores the items of a dump, beside the threads that serve clients.

use super::WarmRestart;
use crate::compression::Compression;
use crate::log;
use nuthatch_cache::{Cache, Error, Expiry, Session, Write};
use nuthatch_tier::{Kind, Record, RecordId, Tier};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// The thread that restores items.
#[derive(Debug)]
pub(crate) struct Restorer {
    warm_restart: Arc<WarmRestart>,
    thread: JoinHandle<()>,
}

impl WarmRestart {
    /// Starts to restore the items of the last run into a cache that no other session uses yet.
    /// Returns `None` if there are none.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses to mark the dump as outdated, or cannot create a thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        cache: &Arc<Cache>,
        compression: &Arc<Compression>,
    ) -> io::Result<Option<Restorer>> {
        self.is_started.store(true, Ordering::Relaxed);
        if !self.counters.begin() {
            return Ok(None);
        }
        // From now on, clients change items, and the folder does not record which.
        self.lock().as_mut().map_or(Ok(()), Tier::mark_outdated).map_err(io::Error::other)?;
        cache.begin_restore();
        let (warm_restart, cache) = (Arc::clone(self), Arc::clone(cache));
        let compression = Arc::clone(compression);
        let thread = Builder::new().name("nuthatch-restore".to_owned()).spawn(move || {
            let start = Instant::now();
            warm_restart.restore_all(&cache, &compression);
            cache.end_restore();
            warm_restart.counters.end();
            let progress = warm_restart.progress();
            if warm_restart.is_restore_over() {
                log::restore_cut(progress.restored, progress.skipped);
            }
            log::restored(progress.restored, progress.skipped, start.elapsed());
        })?;
        Ok(Some(Restorer { warm_restart: Arc::clone(self), thread }))
    }

    fn restore_all(&self, cache: &Cache, compression: &Compression) {
        let mut session = match cache.session() {
            Ok(session) => session,
            Err(error) => return log::restore_failed(&error),
        };
        let loaded = self.reader.all_records(|place, record| match self.reader.record_id(place) {
            Some(id) if !self.removed.contains(id, record.hash) => {
                self.restore_one(&mut session, compression, (record, id))
            }
            _ => ControlFlow::Continue(()),
        });
        for damage in &loaded.damage {
            log::dump_damaged(damage);
        }
        // All that is worth restoring was restored. The dump would only take space.
        if let Some(tier) = self.lock().as_mut()
            && let Err(error) = tier.clear()
        {
            log::restore_failed(&error);
        }
    }

    /// Returns whether the time for restoring is over, because the server stops.
    fn is_restore_over(&self) -> bool {
        self.restore_until.get().is_some_and(|at| Instant::now() >= *at)
    }

    fn restore_one(
        &self,
        session: &mut Session<'_>,
        compression: &Compression,
        (record, id): (&Record<'_>, RecordId),
    ) -> ControlFlow<()> {
        if self.is_cancelled() || self.is_restore_over() {
            return ControlFlow::Break(());
        }
        let frequency = u32::from(record.frequency);
        let restored = match write_of(record) {
            Some(write) => {
                // The guard comes first: it keeps the dictionary of the encoded value.
                let guard = session.guard();
                if !self.allows(record.key, id) {
                    self.counters.skipped.fetch_add(1, Ordering::Relaxed);
                    return ControlFlow::Continue(());
                }
                let value = compression.encode(record.key, record.value);
                let write = write.compressed(value.is_compressed());
                guard.restore(record.key, value.bytes(), &write, frequency)
            }
            None => Ok(false),
        };
        match restored {
            Ok(true) => self.counters.restored.fetch_add(1, Ordering::Relaxed),
            // The rest was read less than what fills the memory.
            Err(Error::Full) => return ControlFlow::Break(()),
            // The maximum length may be lower than in the last run.
            Ok(false) | Err(_) => self.counters.skipped.fetch_add(1, Ordering::Relaxed),
        };
        ControlFlow::Continue(())
    }
}

/// Returns the write that restores a record, or `None` if this version does not know its kind.
fn write_of(record: &Record<'_>) -> Option<Write<'static>> {
    let is_known = record.kind == Kind::STRING && record.database == 0 && !record.is_compressed;
    let expiry = record.expires_ms.map_or(Expiry::Never, Expiry::At);
    let write = Write::new().expiry(expiry).flags(record.client_flags.unwrap_or(0));
    let write = record.cas.map_or(write, |cas| write.cas(cas));
    is_known.then_some(write)
}

impl Restorer {
    /// Waits until all items are restored, for at most half of the time that a dump may take since
    /// `stop_began`.
    pub(crate) fn finish(self, stop_began: Instant) {
        let Self { warm_restart, thread } = self;
        let until = stop_began + warm_restart.max_dump_time / 2;
        warm_restart.restore_until.get_or_init(|| until);
        // A panic was reported when it happened.
        let _ = thread.join();
    }
}
