//! Attempts to execute a request: the first one, and further ones after it failed.

use super::connection::Connection;
use super::disk::{Disk, note_needed};
use super::driver::{Context, Decoders, Driver, Known, Step};
use super::forwarding::Forwards;
use super::reactor::Number;
use super::work::Held;
use crate::full::Full;
use crate::span::Span;
use crate::state::{ClusterWait, MemcachedState, Server};
use nuthatch_cache::Guard;
use std::ops::Range;

/// Executes a request whose items are perhaps on disk, or which keeps all its items in memory.
#[inline]
pub(super) fn first_attempt<T: Decoders, D: Driver<T>>(
    request: &D::Request<'_>,
    mut context: Context<'_, T>,
    (on_disk, keeps_items): (bool, bool),
) -> Result<(), Full> {
    let Context { guard, spans, .. } = context;
    if on_disk || keeps_items {
        guard.keep_items(keeps_items);
        note_needed::<T, D>(request, context.connection, spans, guard);
        if guard.needs_disk() {
            return Err(Full);
        }
    }
    execute_one::<T, D>(request, &mut context)
}

/// Executes a request. Fails as well if it needs items on disk, and leaves no reply then.
#[inline]
fn execute_one<T: Decoders, D: Driver<T>>(
    request: &D::Request<'_>,
    context: &mut Context<'_, T>,
) -> Result<(), Full> {
    let start = context.connection.out.len();
    let result = D::execute(request, context);
    if context.guard.needs_disk() {
        let Connection { client, out, .. } = &mut *context.connection;
        client.zero_copy.truncate_output(out, start);
        return Err(Full);
    }
    result
}

/// After this many reads that did not bring a request closer to its end, clients that do not read
/// their replies are closed.
const ATTEMPTS_BEFORE_CLOSING: u32 = 20;

/// The bytes of a request that was not executed.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    /// The bytes, with bytes after the request that need no reply.
    bytes: &'a [u8],
    /// Whether it is the first request of the connection's input.
    is_first: bool,
}

impl<'a> Input<'a> {
    /// Creates it from the input of the connection, and the range of the request in it.
    #[cold]
    pub(super) fn new(input: &'a [u8], range: Range<usize>) -> Self {
        Self { is_first: range.start == 0, bytes: &input[range] }
    }
}

/// Further attempts to execute a request of a connection.
pub(super) struct Retry<'a> {
    pub(super) number: Number,
    pub(super) input: Input<'a>,
    pub(super) server: &'a Server,
    pub(super) memcache: &'a MemcachedState,
    pub(super) disk: Option<&'a Disk>,
    pub(super) forwards: Option<&'a Forwards>,
    pub(super) spans: &'a [Span],
    pub(super) is_permitted: bool,
}

impl Retry<'_> {
    /// Executes a request once more, after one attempt failed: when memory was freed under this
    /// guard, or later. Returns what the request waits for; `None` if it was answered.
    #[cold]
    pub(super) fn run<T: Decoders, D: Driver<T>>(
        &mut self,
        request: &D::Request<'_>,
        connection: &mut Connection<T>,
        guard: &mut Guard<'_>,
    ) -> Option<Held> {
        if let Some(held) = self.wait_for_cluster::<T, D>(request, connection) {
            return Some(held);
        }
        // What was read found no room for some time: clients that do not read may keep it.
        if guard.needs_disk()
            && connection.disk_attempts % ATTEMPTS_BEFORE_CLOSING == ATTEMPTS_BEFORE_CLOSING - 1
            && connection.may_wait_for_memory(self.server)
        {
            connection.disk_attempts += 1;
            guard.take_on_disk();
            return Some(Held::Memory);
        }
        let Self { server, memcache, spans, is_permitted, .. } = *self;
        match self.wait_for_disk(connection, guard) {
            DiskWait::Waits => return Some(Held::Disk),
            DiskWait::None if self.execute_again::<T, D>(request, connection, guard) => {
                return None;
            }
            // The items that it needs do not fit in memory together.
            DiskWait::Failed | DiskWait::None => {}
        }
        // The slot may have been sealed since the first attempt.
        if let Some(held) = self.wait_for_cluster::<T, D>(request, connection) {
            return Some(held);
        }
        if guard.needs_disk() {
            if let DiskWait::Waits = self.wait_for_disk(connection, guard) {
                return Some(Held::Disk);
            }
        } else if connection.may_wait_for_memory(server) {
            return Some(Held::Memory);
        }
        let known = Known::of_retry(is_permitted);
        let mut context = Context { guard, connection, server, memcache, spans, known };
        D::out_of_memory(request, &mut context);
        None
    }

    /// Returns the bytes of the request, without those after it that need no reply: the decoder may
    /// be in the middle of these.
    fn len_of_request<T: Decoders, D: Driver<T>>(&self, connection: &mut Connection<T>) -> usize {
        let in_place = connection.in_place.decoder().filter(|_| self.input.is_first);
        let protocol = connection.decoder.protocol();
        let new = || T::new(protocol, self.server, connection.trusted);
        let decoder = in_place.unwrap_or_else(new);
        let later = std::mem::replace(&mut connection.decoder, decoder);
        let step = D::next(connection, self.input.bytes, &mut Vec::new());
        connection.decoder = later;
        match step {
            Step::Request { consumed, .. } => consumed,
            Step::Skip { .. } | Step::More => self.input.bytes.len(),
        }
    }

    /// Lets a request wait for its slot, or for the reply of the owner, if it has to.
    fn wait_for_cluster<T: Decoders, D: Driver<T>>(
        &self,
        request: &D::Request<'_>,
        connection: &mut Connection<T>,
    ) -> Option<Held> {
        match connection.client.cluster_wait.take() {
            ClusterWait::Nothing | ClusterWait::Ended => None,
            ClusterWait::Slot => Some(Held::Slot),
            ClusterWait::Owner => {
                let request =
                    D::forward(request, connection, self.server, self.spans, self.input.bytes);
                let (forwards, request) = (self.forwards?, request?);
                if !forwards.has_room_for(&request) {
                    return None;
                }
                let len = self.len_of_request::<T, D>(connection);
                forwards.begin((self.number, connection), request, len);
                Some(Held::Forward)
            }
        }
    }

    /// Executes a request once more if memory was freed. Returns whether it was executed.
    fn execute_again<T: Decoders, D: Driver<T>>(
        &self,
        request: &D::Request<'_>,
        connection: &mut Connection<T>,
        guard: &mut Guard<'_>,
    ) -> bool {
        let Self { server, memcache, spans, is_permitted, .. } = *self;
        let has_freed_memory = guard.renew();
        memcache.flush_if_due(guard);
        if !has_freed_memory {
            return false;
        }
        if self.disk.is_some() && D::changes_several(request) {
            // Items may have been demoted meanwhile. None may be while several are changed.
            guard.keep_items(true);
            note_needed::<T, D>(request, connection, spans, guard);
            if guard.needs_disk() {
                return false;
            }
        }
        let known = Known::of_retry(is_permitted);
        let mut context = Context { guard, connection, server, memcache, spans, known };
        execute_one::<T, D>(request, &mut context).is_ok()
    }

    /// Reads what a request needs that failed, or lets it wait until memory was freed by writing to
    /// disk.
    fn wait_for_disk<T: Decoders>(
        &self,
        connection: &mut Connection<T>,
        guard: &Guard<'_>,
    ) -> DiskWait {
        let Some(disk) = self.disk else { return DiskWait::None };
        let needed = guard.take_on_disk();
        if !needed.is_empty() {
            let reads = disk.read(self.number, connection, &needed);
            return if reads { DiskWait::Waits } else { DiskWait::Failed };
        }
        if disk.wait_for_room(self.number, connection) { DiskWait::Waits } else { DiskWait::None }
    }
}

/// Whether a request that failed waits for the disk.
enum DiskWait {
    /// It waits for items or for memory.
    Waits,
    /// It needs items from disk, and cannot have them.
    Failed,
    /// It needs no items, and no memory will be freed by writing to disk.
    None,
}
