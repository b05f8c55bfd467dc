//! The values of all settings, with their types.

use super::listen_address::ListenAddress;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The values of all settings. The [table](super::table) has their meanings and defaults.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "settings that are independent of each other")]
pub(crate) struct Settings {
    pub(crate) resp: Vec<ListenAddress>,
    pub(crate) memcache: Vec<ListenAddress>,
    pub(crate) pmc: Vec<ListenAddress>,
    pub(crate) mrcache: Vec<ListenAddress>,
    pub(crate) mrcache_reply: &'static str,
    pub(crate) admin: Vec<ListenAddress>,
    pub(crate) grpc: Vec<ListenAddress>,
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
    /// `None` for one thread per core.
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

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
