//! Requests that other nodes of a cluster execute, as one worker forwards them.

use super::connection::Connection;
use super::connections::Connections;
use super::driver::Decoders;
use super::reactor::{Number, Reactor};
use super::work::Forwarded;
use crate::cluster::{Cluster, Forward, ForwardOutcome, ForwardResults};
use crate::state::{ClusterWait, Server};
use std::sync::Arc;

/// Forwards requests of a worker.
pub(crate) struct Forwards {
    cluster: Arc<Cluster>,
    results: Arc<ForwardResults>,
}

impl Forwards {
    /// Creates it for the worker with this reactor.
    pub(crate) fn new(cluster: Arc<Cluster>, reactor: &Reactor) -> Self {
        let waker = reactor.waker();
        Self { cluster, results: Arc::new(ForwardResults::new(move || waker.wake())) }
    }

    /// Returns whether there is memory for a request to be forwarded.
    pub(super) fn has_room_for(&self, request: &Forward) -> bool {
        self.cluster.has_room_to_forward(request)
    }

    /// Counts the memory of forwarded requests and replies as that of connections.
    pub(crate) fn count_memory(&self, server: &Server) {
        let change = self.cluster.take_forwarded_memory_change();
        if change != 0 {
            server.hold(change);
        }
    }

    /// Sends the next request of a connection, which has this many bytes, to the owners of its
    /// slots.
    pub(super) fn begin<T: Decoders>(
        &self,
        (number, connection): (Number, &mut Connection<T>),
        request: Forward,
        len: usize,
    ) {
        connection.forwarded = Forwarded { len, then_executes: request.then_executes };
        let token = u64::from(connection.serial) << 32 | u64::from(number);
        self.cluster.forward(request, &self.results, token);
    }

    /// Adds the replies of other nodes to the output of their connections. A connection whose
    /// request may have been executed or not is closed. Calls `each` with the connections.
    pub(crate) fn end<T: Decoders>(
        &self,
        connections: &mut Connections<T>,
        server: &Server,
        mut each: impl FnMut(Number),
    ) {
        for (token, outcome) in self.results.take() {
            let number = token as Number;
            let serial = (token >> 32) as u32;
            let connection = connections.get(number).filter(|it| it.serial == serial);
            let Some(connection) = connection else { continue };
            match outcome {
                ForwardOutcome::Reply(reply, held) => {
                    // The connection counts its output when this iteration ends.
                    drop(held);
                    connection.end_forwarded(reply, server);
                }
                ForwardOutcome::Unknown => connection.abort(),
            }
            each(number);
        }
    }
}

impl<T: Decoders> Connection<T> {
    /// Ends the request that was forwarded with this reply.
    fn end_forwarded(&mut self, reply: Vec<u8>, server: &Server) {
        let Forwarded { len, then_executes, .. } = std::mem::take(&mut self.forwarded);
        if then_executes {
            self.client.cluster_wait.set(ClusterWait::Ended);
            return;
        }
        self.skip_request(len, server);
        if self.client.takes_reply() {
            self.append_output(reply);
        }
        self.note_executed();
        self.note_output(server.is_short_of_memory());
    }
}
