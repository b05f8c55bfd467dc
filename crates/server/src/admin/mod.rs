//! The metrics and the health of the cache server, for its admin endpoint.
//!
//! The endpoint is [`nuthatch_listen::admin`]. It only reads, and does not run on event loops, so a
//! request there delays no client of the cache.

mod families;
mod live;

use crate::state::Server;
use nuthatch_listen::{LiveReport, MetricsFormat, MetricsSource};

impl MetricsSource for Server {
    fn metrics(&self, format: MetricsFormat) -> String {
        families::text(self, format)
    }

    fn is_stopping(&self) -> bool {
        self.is_ending()
    }

    fn live(&self) -> LiveReport {
        live::report(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Cache, Options as CacheOptions};

    #[test]
    fn health_is_unavailable_while_the_server_stops() {
        let cache = Cache::new(CacheOptions::new().memory(32 << 20)).expect("a small cache");
        let server = Server::new(cache.into());
        assert!(!MetricsSource::is_stopping(&server));
        server.stop();
        assert!(MetricsSource::is_stopping(&server));
    }
}
