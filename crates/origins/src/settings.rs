//! Settings of a cache.

use crate::netrc::Source;
use std::path::PathBuf;
use std::time::Duration;

/// Whether origins are asked, and the maximum age of a version that they do not confirm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freshness {
    pub(crate) offline: bool,
    /// The maximum age; `None` for what the origin allows.
    pub(crate) max_stale: Option<Duration>,
}

/// Settings of a cache. [`Settings::new`] returns defaults that suit most uses.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) block_len: u64,
    pub(crate) max_gap: u64,
    pub(crate) max_request_len: u64,
    pub(crate) read_ahead: u64,
    pub(crate) max_requests: usize,
    pub(crate) retries: u32,
    pub(crate) retry_delay: Duration,
    pub(crate) max_retry_delay: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) read_timeout: Duration,
    pub(crate) fetch_lock_wait: Duration,
    pub(crate) believe: Duration,
    pub(crate) freshness: Freshness,
    pub(crate) check_timeout: Duration,
    pub(crate) max_unsized_len: u64,
    pub(crate) threads: usize,
    pub(crate) netrc: Source,
}

impl Settings {
    /// Returns the defaults: blocks of 1 MiB, requests of up to 8 MiB, 8 of them at once, up to 16
    /// MiB of read-ahead, 5 retries.
    #[must_use]
    pub fn new() -> Self {
        Self {
            block_len: nuthatch_chunks::BLOCK_LEN,
            max_gap: nuthatch_chunks::BLOCK_LEN,
            max_request_len: 8 << 20,
            read_ahead: 16 << 20,
            max_requests: 8,
            retries: 5,
            retry_delay: Duration::from_millis(200),
            max_retry_delay: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            fetch_lock_wait: Duration::from_secs(5),
            believe: Duration::ZERO,
            freshness: Freshness::default(),
            check_timeout: Duration::from_secs(1),
            max_unsized_len: 64 << 20,
            threads: 4,
            netrc: Source::Usual,
        }
    }

    /// Sets the length of blocks, at least 4 KiB. A block is the unit that is stored and fetched.
    /// Blocks of another length are not found. A cache with a small limit uses shorter blocks.
    #[must_use]
    pub fn block_len(mut self, bytes: u64) -> Self {
        self.block_len = bytes.max(4096);
        self
    }

    /// Sets the maximum number of present bytes between two gaps that one request fetches.
    #[must_use]
    pub fn max_gap(mut self, bytes: u64) -> Self {
        self.max_gap = bytes;
        self
    }

    /// Sets the maximum length of a request in bytes, at least a block.
    #[must_use]
    pub fn max_request_len(mut self, bytes: u64) -> Self {
        self.max_request_len = bytes;
        self
    }

    /// Sets the maximum read-ahead of a sequential reader in bytes; 0 for none.
    #[must_use]
    pub fn read_ahead(mut self, bytes: u64) -> Self {
        self.read_ahead = bytes;
        self
    }

    /// Sets the maximum number of concurrent requests for bytes in the whole cache, at least one.
    #[must_use]
    pub fn max_requests(mut self, count: usize) -> Self {
        self.max_requests = count.max(1);
        self
    }

    /// Sets the maximum number of retries after transient failures. A block that arrives resets the
    /// count.
    #[must_use]
    pub fn retries(mut self, count: u32) -> Self {
        self.retries = count;
        self
    }

    /// Sets the delay before the first retry, and the maximum delay. The delay doubles with each
    /// retry, and is shortened at random by up to half. A delay that the origin requests is used,
    /// up to the maximum.
    #[must_use]
    pub fn retry_delays(mut self, first: Duration, max: Duration) -> Self {
        (self.retry_delay, self.max_retry_delay) = (first, max.max(first));
        self
    }

    /// Sets the maximum time to connect.
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// Sets the time after which a request fails if the origin sends nothing.
    #[must_use]
    pub fn read_timeout(mut self, time: Duration) -> Self {
        self.read_timeout = time;
        self
    }

    /// Sets how long a fetch waits for another process that holds the fetch lock of some of its
    /// blocks, since the last of them arrived; 5 seconds by default. Then this process fetches the
    /// blocks, too: the other process may be stopped. For the next 30 seconds, fetches of the same
    /// object do not wait for fetch locks.
    /// [`Counts::fetch_lock_timeouts`](crate::Counts::fetch_lock_timeouts) counts the timeouts.
    #[must_use]
    pub fn fetch_lock_wait(mut self, time: Duration) -> Self {
        self.fetch_lock_wait = time;
        self
    }

    /// Sets how long the last response of an origin about an object is used without asking again.
    /// By default the origin is asked whenever an object is opened.
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
    pub fn check_timeout(mut self, time: Duration) -> Self {
        self.check_timeout = time;
        self
    }

    /// Sets the maximum length of an object whose origin does not report one. It is read into
    /// memory when it is opened.
    #[must_use]
    pub fn max_unsized_len(mut self, bytes: u64) -> Self {
        self.max_unsized_len = bytes;
        self
    }

    /// Sets the number of threads that read and write files of the cache.
    #[must_use]
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count.max(1);
        self
    }

    /// Sets the file with users and passwords of HTTP hosts, or `None` for none. The default is the
    /// file that the variable `NETRC` names, or `.netrc` in the home of the user, if it exists.
    /// They are only sent over TLS or to this machine, unless an address or an
    /// [`Access`](crate::Access) has others. The file is read once.
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
