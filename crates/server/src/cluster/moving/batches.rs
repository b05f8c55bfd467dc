//! The frames of a transfer, which are sent at a limited rate.

use crate::cluster::Cluster;
use crate::cluster::connection::{CallError, Connection};
use crate::cluster::frame::Record;
use std::time::{Duration, Instant};

/// A frame is sent when it has this length. Storing it takes the target well below a millisecond,
/// for which its clients wait.
const FRAME_LEN: usize = 32 << 10;
/// Frames that were sent without a reply.
const MAX_UNANSWERED: usize = 8;
/// How far the rate may be exceeded for a moment.
const BURST: Duration = Duration::from_millis(5);

/// Collects records, and sends them as frames.
pub(super) struct Batches<'a> {
    cluster: &'a Cluster,
    connection: Connection,
    /// The first arguments of the request for a frame.
    head: [Vec<u8>; 5],
    frame: Vec<u8>,
    records: u64,
    /// The maximum length of an argument that the target accepts, and of a value.
    max_len: usize,
    unanswered: usize,
    /// Whether the maximum rate does not apply: clients wait.
    is_urgent: bool,
    /// The time before which the maximum rate permits no further bytes.
    next_send_at: Instant,
}

impl<'a> Batches<'a> {
    /// Creates it for a connection, with the first arguments of the request for a frame.
    pub(super) fn new(cluster: &'a Cluster, connection: Connection, head: [Vec<u8>; 5]) -> Self {
        Self {
            cluster,
            connection,
            head,
            frame: Vec::with_capacity(FRAME_LEN),
            records: 0,
            max_len: usize::MAX,
            unanswered: 0,
            is_urgent: false,
            next_send_at: Instant::now(),
        }
    }

    /// Sets the number of the transfer.
    pub(super) fn set_token(&mut self, token: u64) {
        self.head[3] = token.to_string().into_bytes();
    }

    /// Sets the maximum length of an argument that the target accepts, and of a value.
    pub(super) fn set_max_len(&mut self, max_len: usize) {
        self.max_len = max_len;
    }

    /// Sets whether the maximum rate does not apply, since clients wait.
    pub(super) fn set_urgent(&mut self, is_urgent: bool) {
        self.is_urgent = is_urgent;
    }

    /// Returns the bytes of the records that were not sent yet.
    pub(super) fn len(&self) -> usize {
        self.frame.len()
    }

    /// Adds a record. An item that is too long for the target is left out.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        if record.value_len() > self.max_len {
            return self.leave_out(record.key());
        }
        record.append_to(&mut self.frame);
        self.records += 1;
    }

    /// Leaves out the item of a key, whose earlier values may be at the target.
    pub(super) fn leave_out(&mut self, key: &[u8]) {
        Record::Removal { key }.append_to(&mut self.frame);
        self.cluster.moves.add_left_out(1);
    }

    /// Returns whether the frame is long enough to be sent.
    pub(super) fn is_full(&self) -> bool {
        self.frame.len() >= FRAME_LEN
    }

    /// Sends the frame, and waits as the rate requires. `pause` waits until a time, or until the
    /// transfer is not wanted any more, and returns whether it still is.
    pub(super) fn send(&mut self, pause: &dyn Fn(Instant) -> bool) -> Result<(), CallError> {
        if self.frame.is_empty() {
            return Ok(());
        }
        while self.unanswered >= MAX_UNANSWERED {
            self.take_reply(pause)?;
        }
        let head = self.head.iter().map(Vec::as_slice);
        let request: Vec<&[u8]> = head.chain(self.frame.chunks(self.max_len.max(1))).collect();
        self.connection.send(&request)?;
        self.unanswered += 1;
        self.cluster.moves.add_sent(self.records, self.frame.len());
        let len = self.frame.len();
        self.frame.clear();
        self.frame.shrink_to(2 * FRAME_LEN);
        self.records = 0;
        if self.throttle(len, pause) { Ok(()) } else { Err(CallError::Cancelled) }
    }

    /// Waits until bytes that were sent do not exceed the rate.
    fn throttle(&mut self, len: usize, pause: &dyn Fn(Instant) -> bool) -> bool {
        let rate = self.cluster.access().bytes_per_s;
        if rate == 0 || self.is_urgent {
            return pause(Instant::now());
        }
        let now = Instant::now();
        let cost = Duration::from_secs_f64(len as f64 / rate as f64);
        self.next_send_at = self.next_send_at.max(now) + cost;
        if self.next_send_at < now + BURST {
            return pause(now);
        }
        pause(self.next_send_at)
    }

    /// Sends the rest, and waits for the replies to all frames.
    pub(super) fn finish(&mut self, pause: &dyn Fn(Instant) -> bool) -> Result<(), CallError> {
        self.send(pause)?;
        while self.unanswered > 0 {
            self.take_reply(pause)?;
        }
        Ok(())
    }

    /// Sends another request of the transfer, after all frames, and waits for its reply.
    pub(super) fn call(
        &mut self,
        (name, argument): (&str, &str),
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<String, CallError> {
        self.finish(pause)?;
        let [cluster, transfer, from, token, _] = &self.head;
        let mut request: Vec<&[u8]> = vec![cluster, transfer, from, token, name.as_bytes()];
        request.extend((!argument.is_empty()).then_some(argument.as_bytes()));
        self.connection.send(&request)?;
        self.connection.reply(&|| pause(Instant::now()))
    }

    fn take_reply(&mut self, pause: &dyn Fn(Instant) -> bool) -> Result<(), CallError> {
        self.connection.reply(&|| pause(Instant::now()))?;
        self.unanswered -= 1;
        Ok(())
    }
}
