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
        if server.holds_too_much() {
            // Those that are closed are seen by `heed_changes` of the next iteration.
            server.shed_output(0);
            self.common.wake();
        }
        let len = self.reactor.buffers_len();
        self.untold += len.cast_signed() - self.buffers_len.cast_signed();
        self.buffers_len = len;
    }

    fn spare_memory(&mut self, little: bool) {
        self.spares_memory = little;
        self.reactor.spare_memory(little);
    }
}
