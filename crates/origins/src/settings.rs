//! How objects are read through a cache.

use crate::netrc::Source;
use std::path::PathBuf;
use std::time::Duration;

/// Whether origins are asked, and how old a version may be that they do not confirm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freshness {
    pub(crate) offline: bool,
    /// `None` for what the origin allows.
    pub(crate) max_stale: Option<Duration>,
}

/// How objects are read through a cache. [`Settings::new`] has what suits most.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) block_len: u64,
    pub(crate) gap_most: u64,
    pub(crate) request_most: u64,
    pub(crate) read_ahead: u64,
    pub(crate) requests_at_once: usize,
    pub(crate) retries: u32,
    pub(crate) pause: Duration,
    pub(crate) pause_most: Duration,
    pub(crate) connect_within: Duration,
    pub(crate) silent_most: Duration,
    pub(crate) claim_wait: Duration,
    pub(crate) believe: Duration,
    pub(crate) freshness: Freshness,
    pub(crate) check_within: Duration,
    pub(crate) unmeasured_most: u64,
    pub(crate) threads: usize,
    pub(crate) netrc: Source,
}

impl Settings {
    /// Blocks of 1 MiB, requests of up to 8 MiB and 8 at once, up to 16 MiB read ahead, 5 retries.
    #[must_use]
    pub fn new() -> Self {
        Self {
            block_len: nuthatch_chunks::BLOCK_LEN,
            gap_most: nuthatch_chunks::BLOCK_LEN,
            request_most: 8 << 20,
            read_ahead: 16 << 20,
            requests_at_once: 8,
            retries: 5,
            pause: Duration::from_millis(200),
            pause_most: Duration::from_secs(20),
            connect_within: Duration::from_secs(10),
            silent_most: Duration::from_secs(30),
            claim_wait: Duration::from_secs(5),
            believe: Duration::ZERO,
            freshness: Freshness::default(),
            check_within: Duration::from_secs(1),
            unmeasured_most: 64 << 20,
            threads: 4,
            netrc: Source::Usual,
        }
    }

    /// How long blocks are, 4 KiB at least: what is kept, and the least that is fetched. Another
    /// length does not find what was kept with this one. Less where the cache has a small limit.
    #[must_use]
    pub fn block_len(mut self, bytes: u64) -> Self {
        self.block_len = bytes.max(4096);
        self
    }

    /// Two gaps with up to so many bytes between them, which are there, are fetched by one request.
    #[must_use]
    pub fn gap_most(mut self, bytes: u64) -> Self {
        self.gap_most = bytes;
        self
    }

    /// How many bytes one request asks for; a block at least.
    #[must_use]
    pub fn request_most(mut self, bytes: u64) -> Self {
        self.request_most = bytes;
        self
    }

    /// How far ahead of a sequential reader is fetched, at most; zero for not at all.
    #[must_use]
    pub fn read_ahead(mut self, bytes: u64) -> Self {
        self.read_ahead = bytes;
        self
    }

    /// How many requests for bytes are under way at once in all of the cache, one at least.
    #[must_use]
    pub fn requests_at_once(mut self, count: usize) -> Self {
        self.requests_at_once = count.max(1);
        self
    }

    /// How often a request is repeated that failed in passing, without a block having come
    /// meanwhile.
    #[must_use]
    pub fn retries(mut self, count: u32) -> Self {
        self.retries = count;
        self
    }

    /// How long to wait before the first retry; twice as long each time, up to the second duration.
    /// Each wait is between half and all of that. An origin that says how long to wait is believed,
    /// up to the second duration, too.
    #[must_use]
    pub fn pauses(mut self, first: Duration, most: Duration) -> Self {
        (self.pause, self.pause_most) = (first, most.max(first));
        self
    }

    /// How long connecting may take.
    #[must_use]
    pub fn connect_within(mut self, time: Duration) -> Self {
        self.connect_within = time;
        self
    }

    /// How long an origin may send nothing before the request counts as failed.
    #[must_use]
    pub fn silent_most(mut self, time: Duration) -> Self {
        self.silent_most = time;
        self
    }

    /// Sets how long a fetch waits for another process that has claimed some of its blocks, since
    /// the last of them arrived; 5 seconds by default. Then the blocks are fetched by this process,
    /// too: the other one may be stopped. For the next 30 seconds, its claims on the same object
    /// are not waited for. [`Counts::claim_timeouts`](crate::Counts::claim_timeouts) counts this.
    #[must_use]
    pub fn claim_wait(mut self, time: Duration) -> Self {
        self.claim_wait = time;
        self
    }

    /// For how long an object is taken to be what the origin last said; by default it is asked
    /// whenever an object is opened.
    #[must_use]
    pub fn believe(mut self, time: Duration) -> Self {
        self.believe = time;
        self
    }

    /// Sets whether origins are never contacted. Offline, objects are opened in the version that
    /// the cache last recorded, and missing bytes are an [`Error::Offline`](crate::Error::Offline).
    /// With [`Settings::max_stale`], older versions are refused, too.
    #[must_use]
    pub fn offline(mut self, offline: bool) -> Self {
        self.freshness.offline = offline;
        self
    }

    /// Sets the maximum age of a version that is used while its origin is unavailable: the time
    /// since the origin last confirmed it. An origin is unavailable if it cannot be reached or
    /// answers 429, 500, 502, 503 or 504.
    /// [`ChunkedObject::is_stale`](crate::ChunkedObject::is_stale) returns whether such a version
    /// was used.
    ///
    /// The default is the value of `Cache-Control: stale-if-error` (RFC 5861) that the origin sent,
    /// or zero if it sent none: then opening fails while the origin is unavailable.
    #[must_use]
    pub fn max_stale(mut self, age: Duration) -> Self {
        self.freshness.max_stale = Some(age);
        self
    }

    /// Sets how long an origin may take to report its version before a cached version is used that
    /// [`Settings::max_stale`] allows; one second by default. For the next five seconds, objects of
    /// this origin are opened from the cache without asking it.
    #[must_use]
    pub fn check_within(mut self, time: Duration) -> Self {
        self.check_within = time;
        self
    }

    /// How long an object may be whose origin does not tell its length: it is read whole into
    /// memory when it is opened.
    #[must_use]
    pub fn unmeasured_most(mut self, bytes: u64) -> Self {
        self.unmeasured_most = bytes;
        self
    }

    /// How many threads read and write the files of the cache for tasks.
    #[must_use]
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count.max(1);
        self
    }

    /// Where the users and passwords of hosts are that speak HTTP: the path of a file, or `None`
    /// for nowhere. By default the file that the variable `NETRC` names, or `.netrc` in the home of
    /// the user, if there is one. They are shown by TLS, or to this machine itself, unless an
    /// address or an [`Access`](crate::Access) has others. The file is read once.
    #[must_use]
    pub fn netrc(mut self, path: Option<PathBuf>) -> Self {
        self.netrc = path.map_or(Source::Nowhere, Source::File);
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
