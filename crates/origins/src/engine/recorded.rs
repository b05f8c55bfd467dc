//! Records the responses of origins in the folder, so that objects can be opened while their
//! origins are unavailable.

use crate::clock::now;
use crate::engine::recent::remember;
use crate::lock::lock;
use crate::origin::{Head, Stamp};
use nuthatch_chunks::{Description, Key, Metadata, TaskChunks};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The maximum age of the recorded time of confirmation. An object that is opened often is not
/// recorded each time.
const RECORD_INTERVAL: Duration = Duration::from_mins(1);

/// The responses that this process recorded, by address: when each was written to the folder, and
/// its current state.
#[derive(Default)]
pub(crate) struct RecordedVersions(Mutex<HashMap<String, (Instant, Metadata)>>);

/// The version of an object that the cache last recorded.
#[derive(Debug)]
pub(crate) struct RecordedVersion {
    pub(crate) head: Head,
    /// When the origin last confirmed the version.
    pub(crate) confirmed_at: SystemTime,
}

impl RecordedVersion {
    /// Returns how long ago the origin confirmed it. A time in the future, from another machine or
    /// before the clock was set back, counts as infinitely old.
    pub(crate) fn age(&self) -> Duration {
        now().duration_since(self.confirmed_at).unwrap_or(Duration::MAX)
    }
}

impl RecordedVersions {
    /// Records a response of an origin. A thread of the cache writes it to the folder.
    pub(crate) fn record(&self, address: &str, (key, tasks): (&Key, &TaskChunks), head: &Head) {
        let new = metadata(key, head);
        let mut recorded = lock(&self.0);
        if let Some((written, before)) = recorded.get_mut(address)
            && before.has_same_content(&new)
        {
            before.checked_ms = new.checked_ms;
            if written.elapsed() < RECORD_INTERVAL {
                return;
            }
        }
        remember(&mut recorded, address.to_owned(), new.clone());
        drop(recorded);
        let address = address.to_owned();
        drop(tasks.run_put(move |chunks| {
            let interval = RECORD_INTERVAL.as_millis() as u64;
            let is_recent = |before: &Metadata| {
                before.has_same_content(&new) && new.checked_ms - before.checked_ms < interval
            };
            let later = |before: &Metadata| before.checked_ms > new.checked_ms;
            if !chunks.metadata(&address).is_some_and(|found| later(&found) || is_recent(&found)) {
                // An error has no effect now; the record is missing while the origin is
                // unavailable.
                let _ = chunks.put_metadata(&new);
            }
        }));
    }

    /// Returns the last recorded response about the object at an address.
    pub(crate) async fn recall(
        &self,
        address: &str,
        tasks: &TaskChunks,
    ) -> Option<RecordedVersion> {
        let wanted = address.to_owned();
        let mut found = tasks.run(move |chunks| chunks.metadata(&wanted)).await?;
        // The time in the folder may be older by up to the interval.
        if let Some((_, own)) = lock(&self.0).get(address)
            && own.has_same_content(&found)
        {
            found.checked_ms = found.checked_ms.max(own.checked_ms);
        }
        known(&found)
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn metadata(key: &Key, head: &Head) -> Metadata {
    Metadata {
        etag: head.stamp.etag.clone(),
        last_modified: head.stamp.modified.clone(),
        modified_ms: head.modified.map(millis),
        content_type: head.content_type.clone(),
        ranges: head.ranges,
        stale_if_error: head.stale_if_error,
        ..Metadata::new(key.clone(), millis(now()))
    }
}

fn known(found: &Metadata) -> Option<RecordedVersion> {
    let Description::Blocks { validator, object_len, .. } = found.key.describe() else {
        return None;
    };
    let time = |ms: u64| UNIX_EPOCH.checked_add(Duration::from_millis(ms));
    let head = Head {
        len: Some(object_len),
        stamp: Stamp { etag: found.etag.clone(), modified: found.last_modified.clone() },
        validator: Some(validator),
        modified: found.modified_ms.and_then(time),
        content_type: found.content_type.clone(),
        ranges: found.ranges,
        stale_if_error: found.stale_if_error,
    };
    Some(RecordedVersion { head, confirmed_at: time(found.checked_ms)? })
}
