//! What a server can be told, each thing with its type.

use super::listen_address::Place;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// All settings. What each means, and its default, is in the [table](super::table).
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "settings that are independent of each other")]
pub(crate) struct Configuration {
    pub(crate) resp: Vec<Place>,
    pub(crate) memcache: Vec<Place>,
    pub(crate) pmc: Vec<Place>,
    pub(crate) mrcache: Vec<Place>,
    pub(crate) mrcache_reply: &'static str,
    pub(crate) admin: Vec<Place>,
    pub(crate) grpc: Vec<Place>,
    pub(crate) store: Option<PathBuf>,
    pub(crate) store_create: bool,
    pub(crate) store_allow_network_filesystem: bool,
    pub(crate) store_durability: &'static str,
    pub(crate) store_keep_changes: u64,
    pub(crate) store_memory: u64,
    pub(crate) store_tokens: Option<PathBuf>,
    pub(crate) event_loop: &'static str,
    pub(crate) memory: u64,
    pub(crate) eviction: &'static str,
    /// One for each core, where it is not said how many.
    pub(crate) threads: Option<u64>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) max_clients: u64,
    pub(crate) timeout: Option<Duration>,
    pub(crate) tcp_keepalive: Option<Duration>,
    pub(crate) client_output_hard_limit: u64,
    pub(crate) client_output_soft_limit: u64,
    pub(crate) client_output_soft_time: Option<Duration>,
    pub(crate) drain_ms: u64,
    pub(crate) max_value: u64,
    pub(crate) slow_log_threshold: Option<Duration>,
    pub(crate) slow_log_length: u64,
    pub(crate) latency_tracking: bool,
    pub(crate) log: String,
    pub(crate) log_format: &'static str,
    pub(crate) password: Option<Secret>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) users: Option<PathBuf>,
    pub(crate) insecure: bool,
    pub(crate) enable_debug_command: &'static str,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) tls_client_ca: Option<PathBuf>,
}

/// A text that nobody is to see.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
