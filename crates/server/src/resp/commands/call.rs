//! Commands, requests and the state of a client. They are in one file since these types refer to
//! each other.

use super::failure::CLUSTER_DISABLED;
use super::{Args, Result};
use crate::cluster::{Admission, Cluster};
use crate::output::MIN_VALUE_REF_LEN;
use crate::resp::{Reply, Span};
use crate::state::values::{self, Place};
use crate::state::{Flags, Keys, Server, SnapshotKey};
use nuthatch_cache::{BatchKey, Guard, Item, KeyHash};
use std::fmt;
use std::sync::Arc;

/// A command.
#[derive(Debug)]
pub struct Command {
    /// The name in lower case.
    pub name: &'static str,
    /// The number of arguments, the name included; if negative, the negated minimum.
    pub arity: i32,
    /// Which arguments are keys.
    pub keys: Keys,
    /// Properties, such as whether the command writes.
    pub flags: Flags,
    /// The function that executes the command and appends its reply.
    pub run: fn(&mut Call<'_>) -> Result,
}

impl Command {
    /// Creates a command whose only key is its first argument.
    pub(crate) const fn of_key(
        name: &'static str,
        arity: i32,
        flags: Flags,
        run: fn(&mut Call<'_>) -> Result,
    ) -> Self {
        Self { name, arity, keys: Keys::ONE, flags, run }
    }
}

/// A command that was looked up, and the number under which it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The command.
    pub command: &'static Command,
    pub(crate) number: usize,
}

/// The state of a connection that only RESP needs: its transaction.
#[derive(Debug, Default)]
pub struct Session {
    /// Queued requests and watched keys.
    pub(crate) transaction: Transaction,
}

impl crate::state::Session for Session {
    #[inline]
    fn queued_len(&self) -> usize {
        self.transaction.bytes
    }
}

/// The state of a connection, in any protocol.
pub type Client = crate::state::Client<Session>;

/// Queued requests and watched keys of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Vec<Queued>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) bytes: usize,
    /// Whether a request was refused, so that `EXEC` will be refused, too.
    pub(crate) aborted: bool,
}

/// A copied request.
pub(crate) struct Queued {
    pub(crate) found: Found,
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: Vec<Span>,
}

impl fmt::Debug for Queued {
    /// Formats without the arguments, which may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued").field("name", &self.found.command.name).finish_non_exhaustive()
    }
}

/// A watched key, and the identity of its item, if it had one.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) key: Box<[u8]>,
    pub(crate) item: Option<Seen>,
    /// How often this node of a cluster had lost slots: another node may have changed the key since
    /// then.
    pub(crate) losses: u64,
}

/// What `WATCH` remembers of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The identity of an item: its CAS number and its expiry, which can change without the number.
    Item { cas: Option<u64>, expires_ms: Option<u64> },
    /// The hash of a value in a snapshot.
    Snapshot(u64),
}

impl Seen {
    pub(crate) fn new(item: Item<'_>) -> Self {
        Self::Item { cas: item.cas(), expires_ms: item.expires_ms() }
    }
}

/// A request, and everything that its execution needs.
pub struct Call<'a> {
    /// The cache, under an epoch guard.
    pub guard: &'a Guard<'a>,
    /// The client that sent the request.
    pub client: &'a mut Client,
    /// The state that all connections share.
    pub server: &'a Server,
    /// The name of the command and its arguments.
    pub args: Args<'a>,
    /// The output buffer. Replies are appended to it.
    pub out: &'a mut Vec<u8>,
    /// Whether slots of a cluster have to be checked.
    pub admission: Admission,
    /// What the prefetch found of the first keys of the command, in their order and without those
    /// of snapshots.
    pub prefetched: &'a [BatchKey],
}

impl<'a> Call<'a> {
    /// Returns an encoder that appends the reply.
    #[inline]
    pub fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.out, self.client.version)
    }

    /// Returns the cluster that this server is a node of.
    ///
    /// # Errors
    ///
    /// The error of Redis if there is none.
    pub(crate) fn cluster(&self) -> Result<Arc<Cluster>> {
        self.server.cluster.clone().ok_or(CLUSTER_DISABLED)
    }

    /// Returns the cache and the server, for the functions of [`values`].
    #[inline]
    pub(crate) fn place(&self) -> Place<'a> {
        (self.guard, self.server)
    }

    /// Returns the item of a key at the position that the prefetch found, and `None` if it has to
    /// be looked up. The key must be the only one of the command and not one of a snapshot.
    #[inline(always)]
    pub(crate) fn prefetched_item(&self, key: &[u8]) -> Option<Item<'a>> {
        self.guard.try_get_prefetched(key, self.prefetched.first()?)
    }

    /// Returns the hash of a key, which must be the only one of the command and not one of a
    /// snapshot.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        self.prefetched.first().map_or_else(|| self.server.cache.hash(key), BatchKey::hash)
    }

    /// Replies with the raw value of an item.
    ///
    /// Takes the item by value, so that one that was just read stays in registers.
    #[inline(always)]
    pub(crate) fn reply_value(&mut self, item: Item<'_>) -> Result {
        let value = item.value();
        if value.len() < MIN_VALUE_REF_LEN && !item.is_compressed() {
            self.reply().bulk(value);
            return Ok(());
        }
        self.send_value(item)
    }

    /// Replies with the raw value of an item that is long or compressed.
    #[inline(never)]
    fn send_value(&mut self, item: Item<'_>) -> Result {
        self.reply().bulk_header(values::raw_len(&item));
        let place = self.place();
        values::send(place, &item, (&mut *self.out, &mut self.client.zero_copy))?;
        self.reply().bulk_end();
        Ok(())
    }

    /// Returns the key of a snapshot that this key stands for; `None` for a key of the cache.
    #[inline]
    pub(crate) fn snapshot_key<'k>(&self, key: &'k [u8]) -> Option<SnapshotKey<'k>>
    where
        'a: 'k,
    {
        self.server.snapshot_key(key)
    }

    /// Replies with the text of a value of a snapshot, or null for a missing key.
    #[inline]
    pub(crate) fn reply_snapshot(&mut self, key: SnapshotKey<'_>) -> Result {
        let mut reply = Reply::new(self.out, self.client.version);
        Ok(key.text(
            || self.server.max_reply_len(),
            |text| match text {
                Some(text) => reply.bulk(text),
                None => reply.null(),
            },
        )?)
    }

    /// Returns the raw value of a key of the cache or the text of one of a snapshot; `None` if the
    /// key is missing. The value is in `buffer` unless it is in the cache as it is. Counts a read.
    pub(crate) fn find_value<'i>(
        &self,
        key: &[u8],
        buffer: &'i mut Vec<u8>,
    ) -> Result<Option<&'i [u8]>>
    where
        'a: 'i,
    {
        if let Some(key) = self.snapshot_key(key) {
            let is_found = key.text(
                || self.server.max_reply_len(),
                |text| text.inspect(|text| buffer.extend_from_slice(text)).is_some(),
            )?;
            return Ok(is_found.then_some(buffer));
        }
        let Some(item) = self.guard.get(key) else { return Ok(None) };
        Ok(Some(values::raw_item(self.server, item, buffer)?.value()))
    }

    /// Returns the maximum length of the output buffer after this reply, for replies that may be
    /// far longer than their request.
    pub(crate) fn max_out_len(&self) -> usize {
        self.out.len().saturating_add(self.server.max_reply_len())
    }

    /// Removes the reply from `start` on.
    #[inline]
    pub(crate) fn truncate_output(&mut self, start: usize) {
        self.client.zero_copy.truncate_output(self.out, start);
    }
}
