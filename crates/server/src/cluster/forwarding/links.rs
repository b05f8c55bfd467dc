//! The connections to other nodes, each with a thread.

use super::link::{Link, LinkContext};
use super::request::Part;
use super::shared::Shared;
use crate::cluster::endpoint::Endpoint;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// The maximum number of connections to a node, for each version of RESP.
const MAX_LINKS: usize = 4;
/// A connection with this load is busy: another one is opened.
const BUSY_LOAD: usize = 32;

/// The node of a connection, and the version of RESP of its replies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkKey {
    pub(crate) endpoint: Endpoint,
    pub(crate) is_resp3: bool,
}

struct Open {
    link: Arc<Link>,
    thread: JoinHandle<()>,
}

/// The connections to other nodes.
#[derive(Clone, Default)]
pub(crate) struct Links(Arc<Mutex<BTreeMap<LinkKey, Vec<Open>>>>);

impl Links {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<LinkKey, Vec<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a part on the connection to a node that has the least to do.
    pub(crate) fn push(
        &self,
        key: LinkKey,
        part: Part,
        shared: &Arc<Shared>,
        context: LinkContext,
    ) {
        let mut all = self.lock();
        let open = all.entry(key.clone()).or_default();
        let least = open.iter().min_by_key(|open| open.link.load());
        if let Some(least) = least
            && (least.link.load() < BUSY_LOAD || open.len() >= MAX_LINKS)
        {
            return least.link.push(part, context);
        }
        let link = Arc::new(Link::new(key.endpoint.clone(), key.is_resp3));
        let (links, own, of_thread) = (self.clone(), Arc::clone(&link), Arc::clone(shared));
        let name = thread::Builder::new().name("nuthatch-link".into());
        let started = name.spawn(move || {
            own.run(&of_thread, || links.close(&key, &own));
        });
        match started {
            Ok(thread) => {
                link.push(part, context);
                open.push(Open { link, thread });
            }
            Err(error) => shared.retry(part, &error.to_string()),
        }
    }

    /// Removes a connection that has nothing to do. Returns whether it was removed.
    fn close(&self, key: &LinkKey, link: &Arc<Link>) -> bool {
        let mut all = self.lock();
        if link.load() > 0 {
            return false;
        }
        if let Some(open) = all.get_mut(key) {
            open.retain(|open| !Arc::ptr_eq(&open.link, link));
            if open.is_empty() {
                all.remove(key);
            }
        }
        true
    }

    /// Ends all threads, when the server stops.
    pub(crate) fn join(&self) {
        let all = std::mem::take(&mut *self.lock());
        for Open { link, thread } in all.into_values().flatten() {
            link.stop();
            // A panic has stopped the program already: see `Running::wait`.
            let _ = thread.join();
        }
    }
}
