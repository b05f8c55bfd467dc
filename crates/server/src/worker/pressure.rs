//! Reactions to memory pressure by connections.

use super::Worker;
use super::heap;

impl Worker<'_> {
    /// Starts saving memory when connections use much of it, and stops when they use little again.
    /// In between, frees spare buffers in each iteration.
    pub(super) fn apply_memory_pressure(&mut self) {
        let server = &self.common.server;
        if server.holds_much() {
            if !self.saves_memory {
                self.save_memory(true);
                // All connections free memory once, and later those that are active.
                self.touched.extend(self.connections.iter().map(|(number, _)| number));
                // Other threads may be waiting.
                self.common.wake();
            }
            self.uncounted -= self.spare_buffers.clear().cast_signed();
        } else if self.saves_memory && server.has_memory_to_spare() {
            self.save_memory(false);
        }
        let len = self.reactor.buffers_len();
        self.uncounted += len.cast_signed() - self.buffers_len.cast_signed();
        self.buffers_len = len;
    }

    /// Marks clients to be closed if the buffers of connections use too much memory. Runs at the
    /// end of an iteration, after the connections that were closed in it have been removed.
    pub(super) fn shed_buffers(&self) {
        let server = &self.common.server;
        if server.holds_too_much() {
            server.shed_buffers(0, 0);
        }
        if self.has_new_marks() {
            // The threads of those clients may be waiting, and this one is about to wait.
            self.common.wake();
        }
    }

    /// Makes the allocator return memory to the system that connections have freed, at most once a
    /// second. Runs at the end of an iteration, after the memory of closed connections was freed.
    pub(super) fn return_freed_memory(&mut self) {
        let server = &self.common.server;
        let has_freed = server.has_freed_memory();
        let returns = has_freed && self.clock.is_due();
        if returns && server.begin_peak() {
            heap::return_freed_memory();
        }
        self.clock.set_returns_memory(has_freed && !returns);
    }

    /// Returns whether requests that waited can be executed now.
    pub(super) fn has_waiting(&mut self) -> bool {
        let have_slots_changed = !self.slot_waiters.is_empty() && self.have_slots_changed();
        let Self { disk, connections, .. } = self;
        !self.waiting.is_empty()
            || have_slots_changed
            || disk.as_ref().is_some_and(|disk| disk.has_next_long(connections))
            || !self.starving.is_empty() && self.may_retry()
    }

    /// Returns whether the slots of the cluster have changed since this iteration began.
    fn have_slots_changed(&self) -> bool {
        let cluster = self.common.server.cluster.as_ref();
        cluster.is_some_and(|cluster| cluster.generation() != self.slot_changes)
    }

    /// Lets requests that wait for slots of the cluster be executed again if some have changed.
    pub(super) fn resume_slot_waiters(&mut self) {
        if let Some(cluster) = &self.common.server.cluster {
            let changes = cluster.generation();
            if changes != self.slot_changes {
                self.slot_changes = changes;
                self.waiting.append(&mut self.slot_waiters);
            }
        }
    }

    /// Returns whether the memory of all clients that were marked to be closed is free, so that
    /// requests that found no memory can be executed again.
    pub(super) fn may_retry(&self) -> bool {
        !self.common.server.clients.is_closing()
    }

    /// Reports the marked connections that were removed in this iteration. If they were the last,
    /// threads with requests that wait for their memory are woken.
    pub(super) fn report_closed(&mut self) {
        let closed = std::mem::take(&mut self.closed);
        if closed > 0 && self.common.server.clients.note_closed(closed) {
            self.common.wake();
        }
    }

    fn save_memory(&mut self, saves: bool) {
        self.saves_memory = saves;
        self.reactor.save_memory(saves);
    }
}
