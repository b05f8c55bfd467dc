//! Settings of a cache.

use crate::netrc::Source;
use std::path::PathBuf;
use std::time::Duration;

/// Whether origins are contacted, and the maximum age of a version that they do not confirm.
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
    pub(crate) max_age: Duration,
    pub(crate) freshness: Freshness,
    pub(crate) check_timeout: Duration,
    pub(crate) max_unsized_len: u64,
    pub(crate) threads: usize,
    pub(crate) netrc: Source,
}

impl Settings {
    /// Returns the default settings. Each method names its default.
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
            max_age: Duration::ZERO,
            freshness: Freshness::default(),
            check_timeout: Duration::from_secs(1),
            max_unsized_len: 64 << 20,
            threads: 4,
            netrc: Source::Usual,
        }
    }

    /// Sets the length of blocks in bytes, at least 4 KiB; 1 MiB by default. A block is the unit
    /// that is stored and fetched. Stored blocks of another length are not used. In a folder with a
    /// small limit, blocks are at most an eighth of the limit long.
    #[must_use]
    pub fn block_len(mut self, bytes: u64) -> Self {
        self.block_len = bytes.max(4096);
        self
    }

    /// Sets the maximum number of cached bytes between two missing ranges that one request fetches
    /// together; 1 MiB by default.
    #[must_use]
    pub fn max_gap(mut self, bytes: u64) -> Self {
        self.max_gap = bytes;
        self
    }

    /// Sets the maximum number of bytes that one request fetches; 8 MiB by default. A request
    /// fetches at least one block.
    #[must_use]
    pub fn max_request_len(mut self, bytes: u64) -> Self {
        self.max_request_len = bytes;
        self
    }

    /// Sets the maximum read-ahead of a sequential reader in bytes, 16 MiB by default; 0 for none.
    #[must_use]
    pub fn read_ahead(mut self, bytes: u64) -> Self {
        self.read_ahead = bytes;
        self
    }

    /// Sets the maximum number of concurrent requests for bytes in the whole cache, at least 1; 8
    /// by default.
    #[must_use]
    pub fn max_requests(mut self, count: usize) -> Self {
        self.max_requests = count.max(1);
        self
    }

    /// Sets the maximum number of retries after transient failures, 5 by default. The count starts
    /// again after each received block.
    #[must_use]
    pub fn retries(mut self, count: u32) -> Self {
        self.retries = count;
        self
    }

    /// Sets the delay before the first retry and the maximum delay; 200 ms and 20 s by default. The
    /// delay doubles with each retry, and is shortened at random by up to half. If the origin sends
    /// `Retry-After`, that delay is used; if it exceeds the maximum, the operation fails.
    #[must_use]
    pub fn retry_delays(mut self, first: Duration, max: Duration) -> Self {
        (self.retry_delay, self.max_retry_delay) = (first, max.max(first));
        self
    }

    /// Sets the maximum time to connect, 10 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// Sets the time after which a request fails if the origin sends no data, 30 s by default.
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

    /// Sets how long the last response of an origin about an object is reused, so that opening the
    /// object again sends no request. Zero by default: each opening checks the version.
    #[must_use]
    pub fn max_age(mut self, time: Duration) -> Self {
        self.max_age = time;
        self
    }

    /// Sets whether origins are never contacted, `false` by default. Offline, objects are opened in
    /// the version that the cache last recorded, and missing bytes are an
    /// [`Error::Offline`](crate::Error::Offline). [`Settings::max_stale`] limits the age of that
    /// version; by default any age is accepted.
    #[must_use]
    pub fn offline(mut self, offline: bool) -> Self {
        self.freshness.offline = offline;
        self
    }

    /// Sets the maximum age of a version that is used while its origin is unavailable: the time
    /// since the origin last confirmed it. An origin is unavailable if it cannot be reached or
    /// responds with 429, 500, 502, 503 or 504.
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
    /// this origin are opened from the cache without a check.
    #[must_use]
    pub fn check_timeout(mut self, time: Duration) -> Self {
        self.check_timeout = time;
        self
    }

    /// Sets the maximum length in bytes of an object whose origin reports no length; 64 MiB by
    /// default. Such an object is read into memory when it is opened.
    #[must_use]
    pub fn max_unsized_len(mut self, bytes: u64) -> Self {
        self.max_unsized_len = bytes;
        self
    }

    /// Sets the number of threads that read and write files of the cache, at least 1; 4 by default.
    #[must_use]
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count.max(1);
        self
    }

    /// Sets the `.netrc` file with users and passwords of HTTP hosts, or `None` for no file. The
    /// default is the file that the variable `NETRC` names, or `.netrc` in the home of the user, if
    /// it exists. Its passwords are sent only over TLS or to this machine, and only if neither the
    /// address nor [`Access`](crate::Access) has credentials. The file is read once.
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
