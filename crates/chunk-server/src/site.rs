//! What all requests share.

use crate::credentials::Credentials;
use crate::metrics::Counters;
use nuthatch_origins::{LogLimit, ObjectCache, Prefix};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What all requests of a server share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Site>);

pub(crate) struct Site {
    pub(crate) cache: ObjectCache,
    pub(crate) prefix: Prefix,
    pub(crate) credentials: Arc<watch::Sender<Arc<Credentials>>>,
    pub(crate) origin_timeout: Duration,
    pub(crate) log_limit: LogLimit,
    pub(crate) counters: Counters,
}

impl Shared {
    pub(crate) fn new(site: Site) -> Self {
        Self(Arc::new(site))
    }
}

impl std::ops::Deref for Shared {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.0
    }
}

impl Site {
    /// Returns the current credentials.
    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        self.credentials.borrow().clone()
    }
}

impl AsRef<Counters> for Shared {
    fn as_ref(&self) -> &Counters {
        &self.0.counters
    }
}
