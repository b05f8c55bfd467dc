//! Adds received bytes to the work of an iteration.

use super::Worker;
use super::decoder::Connection;
use crate::net::disk::Disk;
use crate::net::driver::Decoders;
use crate::net::reactor::{Event, Filled, Number};
use crate::net::work::{Source, Work, append};
use crate::state::Server;
use nuthatch_cache::Session;
use std::io;

impl Worker<'_> {
    /// Adds received bytes to the work of this iteration.
    pub(super) fn receive(&mut self, number: Number, filled: Filled) {
        let Self { common, reactor, connections, works, session, starving, disk, .. } = self;
        let server = &common.server;
        let Some(connection) = connections.get(number) else { return reactor.give_back(filled) };
        if connection.state.is_closing() {
            connection.state.discard(filled.len());
            return reactor.give_back(filled);
        }
        let works = &mut works[connection.decoder.protocol().index()];
        let was_stalled = connection.in_place.is_stalled();
        let taken = if connection.tls.is_some() {
            receive_tls(connection, (session, server), reactor.bytes(&filled), (number, works));
            filled.len()
        } else {
            connection.receive_value(session, server, reactor.bytes(&filled))
        };
        if connection.in_place.is_stalled() && !was_stalled {
            wait_for_memory(disk.as_ref(), starving, number, connection);
        }
        if taken == filled.len() {
            return reactor.give_back(filled);
        }
        if let Some(at) = connection.work {
            let source = std::mem::replace(&mut works[at].source, Source::Inbox(Vec::new()));
            let mut inbox = match source {
                Source::Inbox(bytes) => bytes,
                Source::Buffer(first) => {
                    let bytes = reactor.bytes(&first).to_vec();
                    reactor.give_back(first);
                    bytes
                }
            };
            append(&mut inbox, &reactor.bytes(&filled)[taken..]);
            works[at].source = Source::Inbox(inbox);
        } else if connection.inbox.is_empty() && !connection.blocked && !connection.waits {
            connection.work = Some(works.len());
            works.push(Work { connection: number, source: Source::Buffer(filled), start: 0 });
            return;
        } else {
            append(&mut connection.inbox, &reactor.bytes(&filled)[taken..]);
            if !connection.blocked && !connection.waits {
                connection.enqueue(number, works);
            }
        }
        reactor.give_back(filled);
    }

    /// Continues with a connection whose client has read replies.
    pub(super) fn unblock(&mut self, number: Number) {
        let Some(connection) = self.connections.get(number) else { return };
        if !connection.blocked {
            return;
        }
        connection.note_output(self.common.server.is_short_of_memory());
        if connection.may_execute() && !connection.inbox.is_empty() {
            connection.enqueue(number, &mut self.works[connection.decoder.protocol().index()]);
        }
    }

    /// Ends the reads from disk that have completed, and removes them from the events.
    pub(super) fn end_reads(&mut self, events: &mut Vec<Event>) {
        let Self { disk: Some(disk), session, .. } = self else { return };
        let is_read = |event: &mut Event| matches!(event, Event::Read { .. });
        for event in events.extract_if(.., is_read) {
            if let Event::Read { number, buffer, len } = event {
                disk.end_read(session, number, buffer, len);
            }
        }
    }

    /// Starts the reads from disk that requests need.
    pub(super) fn start_reads(&mut self) -> io::Result<()> {
        if let Some(disk) = &mut self.disk {
            self.uncounted += disk.start_reads(&mut self.reactor)?;
        }
        Ok(())
    }

    /// Lets the requests be executed that waited for what the disk has done.
    pub(super) fn take_done_by_disk(&mut self) {
        let Self { disk: Some(disk), connections, waiting, .. } = self else { return };
        let next = disk.next_long(connections);
        for (number, serial) in disk.take_done().chain(next) {
            let Some(connection) = connections.get(number) else { continue };
            if connection.serial == serial && connection.disk_waits > 0 {
                connection.disk_waits -= 1;
                if connection.disk_waits == 0 {
                    waiting.push(number);
                }
            }
        }
    }

    /// Adds the replies of other nodes to the output, and resumes the connections.
    pub(super) fn take_forwarded(&mut self) {
        let Self { forwards: Some(forwards), connections, common, waiting, .. } = self else {
            return;
        };
        forwards.end(connections, &common.server, |number| waiting.push(number));
    }

    /// Adds requests that waited to the work of this iteration, before any others.
    pub(super) fn resume_waiting(&mut self) {
        let may_retry = self.may_retry();
        let Self { common, connections, works, session, waiting, starving, touched, disk, .. } =
            self;
        let first = if may_retry { std::mem::take(starving) } else { Vec::new() };
        for number in first.into_iter().chain(waiting.drain(..)) {
            let Some(connection) = connections.get(number) else { continue };
            touched.push(number);
            if connection.forwarded.is_pending() {
                continue;
            }
            connection.waits = false;
            connection.resume_value(session, &common.server);
            if connection.may_execute() {
                connection.enqueue(number, &mut works[connection.decoder.protocol().index()]);
            }
            if connection.in_place.is_stalled() {
                wait_for_memory(disk.as_ref(), starving, number, connection);
            }
        }
    }
}

/// Resumes a connection, whose value found no memory, when writing to disk or closing a client has
/// freed some.
fn wait_for_memory(
    disk: Option<&Disk>,
    starving: &mut Vec<Number>,
    number: Number,
    connection: &mut Connection,
) {
    if disk.is_none_or(|disk| !disk.wait_for_room(number, connection)) {
        starving.push(number);
    }
}

/// Decrypts bytes that were received over TLS, and adds the plain text to the work.
fn receive_tls(
    connection: &mut Connection,
    (session, server): (&mut Session<'_>, &Server),
    bytes: &[u8],
    (number, works): (Number, &mut Vec<Work>),
) {
    let Some(mut tls) = connection.tls.take() else { return };
    let is_unfinished = connection.in_place.is_unfinished();
    let inbox = match connection.work.map(|at| &mut works[at].source) {
        Some(Source::Inbox(bytes)) => bytes,
        _ => &mut connection.inbox,
    };
    let before = inbox.len();
    // Complete requests before the end are executed.
    if !tls.receive(bytes, inbox) {
        connection.state.end_input();
    }
    connection.tls = Some(tls);
    if is_unfinished {
        // The inbox is not part of the work of this iteration.
        let plain = connection.inbox.split_off(before);
        let taken = connection.receive_value(session, server, &plain);
        append(&mut connection.inbox, &plain[taken..]);
    }
    if connection.may_execute() && !connection.inbox.is_empty() {
        connection.enqueue(number, works);
    }
}
