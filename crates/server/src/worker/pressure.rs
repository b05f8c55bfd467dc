//! What a worker does when connections take so much memory that there is little of it left.

use super::Worker;

impl Worker<'_> {
    /// Gives memory back that nobody uses, while there is little of it. Later it is taken again.
    pub(super) fn heed_memory(&mut self) {
        let server = &self.common.server;
        if server.is_short_of_memory() {
            if !self.spares_memory {
                self.spare_memory(true);
                // All connections are looked at once, and from here on those with something to do.
                self.touched.extend(self.connections.iter().map(|(number, _)| number));
                // Other threads may be asleep.
                self.common.wake();
            }
            self.untold -= self.spares.clear().cast_signed();
        } else if self.spares_memory && server.has_memory_to_spare() {
            self.spare_memory(false);
        }
        let len = self.reactor.buffers_len();
        self.untold += len.cast_signed() - self.buffers_len.cast_signed();
        self.buffers_len = len;
    }

    /// Marks clients to be closed that do not take their output, if connections take too much. It
    /// runs at the end of an iteration, when what was closed in it is gone: the next round begins
    /// as the last one ends.
    pub(super) fn shed_output(&self) {
        let server = &self.common.server;
        if server.holds_too_much() {
            let marks = server.clients.marks();
            server.shed_output(0);
            if server.clients.marks() != marks {
                // The threads of those clients may be asleep, and this one is about to be.
                self.common.wake();
            }
        }
    }

    fn spare_memory(&mut self, little: bool) {
        self.spares_memory = little;
        self.reactor.spare_memory(little);
    }
}
