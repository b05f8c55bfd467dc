//! Receives long values of a connection in place: see [`pending_value`](super::pending_value).

use super::connection::Connection;
use super::decoders::Decoders;
use super::disk::MAX_ROOM_WAITS;
use super::pending_value::{InPlace, NoMemory, Receiving, Value, min_in_place_len, push_all};
use super::work::append;
use crate::state::Server;
use nuthatch_cache::{Error, Guard, Session};

impl<T: Decoders> Connection<T> {
    /// Appends `bytes` to the value that is received in place, and returns how many were consumed.
    /// Without memory, the remaining ones wait in the inbox (see [`InPlace::is_stalled`]), or the
    /// value is discarded.
    #[inline]
    pub(crate) fn receive_value(
        &mut self,
        session: &mut Session<'_>,
        server: &Server,
        bytes: &[u8],
    ) -> usize {
        if self.in_place.is_unfinished() { self.continue_value(session, server, bytes) } else { 0 }
    }

    fn continue_value(
        &mut self,
        session: &mut Session<'_>,
        server: &Server,
        bytes: &[u8],
    ) -> usize {
        let InPlace::Receiving(receiving) = &mut self.in_place else { return 0 };
        if receiving.is_stalled() {
            append(&mut self.inbox, bytes);
            return bytes.len();
        }
        let NoMemory { taken } = match receiving.value.take(session, bytes) {
            Ok(taken) => return taken,
            Err(no_memory) => no_memory,
        };
        if self.stall_or_discard(server, self.inbox.len()) {
            append(&mut self.inbox, &bytes[taken..]);
            return bytes.len();
        }
        taken + self.continue_value(session, server, &bytes[taken..])
    }

    /// Appends bytes that wait for memory to their value. If there is still none and no client can
    /// be closed, discards the value.
    pub(crate) fn resume_value(&mut self, session: &mut Session<'_>, server: &Server) {
        let InPlace::Receiving(receiving) = &mut self.in_place else { return };
        let Some(at) = receiving.stalled_at.take() else { return };
        let (taken, is_short) = match receiving.value.take(session, &self.inbox[at..]) {
            Ok(taken) => (taken, false),
            Err(NoMemory { taken }) => (taken, true),
        };
        self.inbox.drain(at..at + taken);
        if !is_short {
            self.note_executed();
        } else if !self.stall_or_discard(server, at) {
            let InPlace::Receiving(receiving) = &mut self.in_place else { return };
            let taken = receiving.value.take(session, &self.inbox[at..]).unwrap_or(0);
            self.inbox.drain(at..at + taken);
        }
    }

    /// Makes the value wait for memory, with its next bytes at this place of the inbox, or discards
    /// it. Returns whether it waits.
    #[cold]
    fn stall_or_discard(&mut self, server: &Server, at: usize) -> bool {
        let waits = if server.waits_for_disk() {
            self.memory_waits < MAX_ROOM_WAITS
        } else {
            self.may_wait_for_memory(server)
        };
        let InPlace::Receiving(receiving) = &mut self.in_place else { return false };
        if waits {
            receiving.stalled_at = Some(at);
            self.waits = true;
        } else {
            receiving.value = Value::Discarded { missing: receiving.value.missing() };
        }
        waits
    }

    /// Discards the incomplete value of the next request: the bytes that were gathered in the
    /// inbox, and the rest as it arrives. Returns false and discards nothing if no value is
    /// incomplete, if the client has not logged in, or if the other bytes of its requests exceed
    /// `limit`.
    pub(crate) fn discard_value(&mut self, limit: usize) -> bool {
        let Some((start, len)) = self.decoder.pending_value().filter(|_| self.trusted) else {
            return false;
        };
        let at = self.done + start;
        let taken = len.min(self.inbox.len().saturating_sub(at));
        if self.inbox.len() - self.done - taken + self.client.queued_len() > limit {
            return false;
        }
        self.inbox.drain(at..at + taken);
        self.inbox.shrink_to(0);
        self.begin_value(Value::Discarded { missing: len - taken });
        true
    }

    /// Begins to receive the incomplete value at the end of the inbox in place, if it is long.
    #[inline]
    pub(crate) fn begin_in_place(&mut self, session: &mut Session<'_>, server: &Server) {
        if let Some((start, len)) = self.decoder.pending_value()
            && len >= min_in_place_len(&server.cache)
            && matches!(self.in_place, InPlace::None)
            && self.trusted
            && !self.waits
            && !self.state.is_closing()
        {
            self.in_place = InPlace::Gathered;
            if server.may_receive_in_place(len) {
                self.start_in_place(&mut session.guard(), server, (start, len));
            }
        }
    }

    #[cold]
    fn start_in_place(
        &mut self,
        guard: &mut Guard<'_>,
        server: &Server,
        (start, len): (usize, usize),
    ) {
        // The key comes before the value, if there is one.
        let pending = |guard: &Guard<'_>| guard.begin_value(&server.cache, start, len);
        let receiving = match pending(guard) {
            Err(Error::Full) if guard.renew() => pending(guard),
            other => other,
        };
        let Ok(mut pending) = receiving else { return };
        let at = self.done + start;
        let (taken, is_short) = match push_all(&mut pending, guard, &self.inbox[at..]) {
            Ok(taken) => (taken, false),
            Err(NoMemory { taken }) if server.waits_for_disk() => (taken, true),
            Err(NoMemory { .. }) => return,
        };
        self.inbox.drain(at..at + taken);
        self.inbox.shrink_to(0);
        self.begin_value(Value::Pending(pending));
        if is_short {
            self.stall_or_discard(server, at);
        }
    }

    /// Begins to receive the value of the next request in place: it is not in the inbox.
    fn begin_value(&mut self, value: Value) {
        self.decoder.elide();
        let decoder = self.decoder.clone();
        self.in_place =
            InPlace::Receiving(Box::new(Receiving { value, decoder, stalled_at: None }));
    }
}
