//! How many connections the servers accept.

use crate::outcome::Failure;
use crate::process;
use crate::settings::LoadedSettings;
use nuthatch_rpc::Options as StoreOptions;
use nuthatch_server::state::Server;

/// Files that one thread opens besides its listening sockets: its ring or epoll instance, and what
/// wakes it.
const FILES_PER_THREAD: u64 = 3;

/// If there are few connections, one of this many is for clients of the store.
const STORE_RATIO: u64 = 4;

/// How many connections there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    /// Connections of clients of the cache.
    pub(super) clients: u64,
    /// Connections of clients of the store, if there is one.
    pub(super) store: usize,
}

impl ConnectionLimits {
    /// Raises the limit of open files, and returns what it allows.
    pub(super) fn of_this_process(
        loaded: &LoadedSettings,
        threads: usize,
        listeners: usize,
    ) -> Result<Self, Failure> {
        let has_store = loaded.settings.store.is_some();
        let files = process::raise_file_limit();
        let other_files = threads as u64 * (FILES_PER_THREAD + listeners as u64);
        Self::of(files, other_files, has_store).map_err(Failure::Error)
    }

    /// Shares the connections that a limit of open files allows: one in four is kept for clients of
    /// the store, up to the limit of the gRPC server.
    fn of(file_limit: u64, other_files: u64, has_store: bool) -> Result<Self, String> {
        if !has_store {
            let clients = process::max_connections(file_limit, |_| other_files)?;
            return Ok(Self { clients, store: 0 });
        }
        // The store's files, and its first connection.
        let other_files = |limit| other_files + process::spare_files(limit) + 1;
        let all = process::max_connections(file_limit, other_files)?;
        let more = (StoreOptions::CONNECTIONS as u64 - 1).min(all / STORE_RATIO);
        Ok(Self { clients: all - more, store: more as usize + 1 })
    }

    /// Sets how many clients the cache accepts.
    pub(super) fn apply(self, loaded: &LoadedSettings, server: &Server) -> Result<(), Failure> {
        server.settings.limit_max_clients(self.clients);
        let clients = max_clients(loaded, self.clients);
        server.settings.change("maxclients", &clients.to_string()).map_err(Failure::Error)
    }
}

/// Returns how many clients there may be: as configured, or fewer, with a warning.
pub(super) fn max_clients(loaded: &LoadedSettings, limit: u64) -> u64 {
    process::limit_connections("max-clients", loaded.settings.max_clients, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients of the store were not counted, and with few files they left none for the cache.
    #[test]
    fn clients_of_the_store_count_against_the_limit_of_open_files() {
        for files in [100, 1024, 4096, 1 << 20] {
            let alone = ConnectionLimits::of(files, 6, false).expect("room").clients;
            let both = ConnectionLimits::of(files, 6, true).expect("room");
            assert!(both.clients + (both.store as u64) < alone, "{files}: {both:?} {alone}");
            assert!(both.clients > 0 && (1..=1024).contains(&both.store), "{files}: {both:?}");
        }
        assert_eq!(ConnectionLimits::of(1 << 20, 6, true).expect("room").store, 1024);
    }
}
