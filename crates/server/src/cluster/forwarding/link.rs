//! A connection to another node, with a thread that sends requests and receives their replies.

use super::memory::HeldBytes;
use super::request::Part;
use super::shared::Shared;
use crate::cluster::connection::{CallError, Connection, NodeAccess};
use crate::cluster::endpoint::Endpoint;
use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Maximum bytes of requests that are sent before their replies are received. The sockets have room
/// for them, so the other node can always send.
const MAX_BATCH_BYTES: usize = 32 << 10;
/// A part adds to the load by this many bytes as much as by itself.
const LOAD_BYTES: usize = 2 << 10;
/// A connection that had nothing to do for this time is closed.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The maximum time in which nothing of a reply arrives.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// A reply of this length is received even if there is no memory for longer ones.
const MIN_REPLY_LEN: usize = 64 << 10;
/// Errors of nodes that have not executed the request: its slot moves, or has moved.
const REFUSALS: [&[u8]; 3] = [b"-MOVED ", b"-TRYAGAIN ", b"-CLUSTERDOWN "];

/// How a connection is opened and used.
#[derive(Clone, Default)]
pub(crate) struct LinkContext {
    /// The login, which may change while the connection exists: the last one is used.
    pub(crate) access: Arc<NodeAccess>,
    /// The maximum bytes of requests and replies of all connections.
    pub(crate) max_bytes: usize,
}

/// Parts to be sent.
#[derive(Default)]
struct Queue {
    parts: VecDeque<Part>,
    context: LinkContext,
}

/// A connection to another node.
pub(crate) struct Link {
    endpoint: Endpoint,
    is_resp3: bool,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// The socket of the open connection.
    socket: Mutex<Weak<TcpStream>>,
    /// What its parts without a reply take.
    load: AtomicUsize,
}

fn load_of(part: &Part) -> usize {
    1 + part.request().len() / LOAD_BYTES
}

impl Link {
    pub(crate) fn new(endpoint: Endpoint, is_resp3: bool) -> Self {
        let (queue, changed, socket, load) = Default::default();
        Self { endpoint, is_resp3, queue, changed, socket, load }
    }

    /// Returns how much the connection has to do.
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn socket(&self) -> MutexGuard<'_, Weak<TcpStream>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a part to be sent.
    pub(crate) fn push(&self, part: Part, context: LinkContext) {
        self.load.fetch_add(load_of(&part), Ordering::Relaxed);
        let mut queue = self.queue();
        queue.parts.push_back(part);
        queue.context = context;
        drop(queue);
        self.changed.notify_one();
    }

    /// Ends the thread, since the server stops. It may be sending to a node that does not receive.
    pub(crate) fn stop(&self) {
        if let Some(socket) = self.socket().upgrade() {
            // The other node may have closed it.
            let _ = socket.shutdown(Shutdown::Both);
        }
        // The thread is not between its look at whether the server stops and its wait.
        drop(self.queue());
        self.changed.notify_one();
    }

    /// Sends parts and receives their replies, until the server stops or `close` has removed the
    /// connection, which had nothing to do.
    pub(crate) fn run(&self, shared: &Shared, close: impl Fn() -> bool) {
        let mut connection = None;
        while let Some((batch, context)) = self.next_batch(shared, &close) {
            let load: usize = batch.iter().map(load_of).sum();
            connection = self.exchange(connection, batch, (shared, &context));
            self.load.fetch_sub(load, Ordering::Relaxed);
        }
    }

    /// Waits for parts. Returns `None` when the thread has to end.
    fn next_batch(
        &self,
        shared: &Shared,
        close: &impl Fn() -> bool,
    ) -> Option<(VecDeque<Part>, LinkContext)> {
        let mut queue = self.queue();
        while queue.parts.is_empty() {
            if shared.is_stopping() {
                return None;
            }
            let waited = self.changed.wait_timeout(queue, IDLE_TIME);
            let (after, time) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = after;
            if time.timed_out() && queue.parts.is_empty() {
                drop(queue);
                if close() {
                    return None;
                }
                queue = self.queue();
            }
        }
        let (mut batch, mut len) = (VecDeque::new(), 0);
        while let Some(part) = queue.parts.pop_front() {
            len += part.request().len();
            if len > MAX_BATCH_BYTES && !batch.is_empty() {
                queue.parts.push_front(part);
                break;
            }
            batch.push_back(part);
        }
        Some((batch, queue.context.clone()))
    }

    /// Sends parts, and receives their replies. Returns the connection if it can be used again.
    fn exchange(
        &self,
        connection: Option<Connection>,
        mut batch: VecDeque<Part>,
        (shared, context): (&Shared, &LinkContext),
    ) -> Option<Connection> {
        let now = Instant::now();
        batch.retain(|part| !part.forward.has_ended());
        // The parts before these took long.
        let (late, in_time) = batch.into_iter().partition(|part| now >= part.forward.until);
        batch = in_time;
        for part in Vec::from(late) {
            let slow = || self.text_of("it has not answered other requests in time");
            let reason = part.refusal.clone().unwrap_or_else(slow);
            shared.fail(&part, &reason);
        }
        if batch.is_empty() {
            return connection;
        }
        let connection = connection.filter(Connection::is_idle);
        let open = || self.open(shared, &context.access);
        let mut connection = match connection.map_or_else(open, Ok) {
            Ok(connection) => connection,
            Err(error) => {
                let text = self.text_of(&text(&error));
                for part in batch {
                    shared.retry(part, &text);
                }
                return None;
            }
        };
        match self.call(&mut connection, &mut batch, (shared, context)) {
            Ok(()) => Some(connection),
            Err(error) => {
                let text = self.text_of(&text(&error));
                for part in batch {
                    shared.lose(part, &text);
                }
                None
            }
        }
    }

    /// Sends parts, receives their replies, and removes those that have one.
    fn call(
        &self,
        connection: &mut Connection,
        batch: &mut VecDeque<Part>,
        (shared, context): (&Shared, &LinkContext),
    ) -> Result<(), CallError> {
        match batch.iter().map(Part::request).collect::<Vec<_>>().as_slice() {
            [one] => connection.write(one)?,
            several => connection.write(&several.concat())?,
        }
        while !batch.is_empty() {
            let mut held = HeldBytes::new(&shared.memory, 0);
            let mut has_room = |len: usize| {
                let more = len.saturating_sub(held.len());
                let has_room = shared.memory.has_room(more, context.max_bytes);
                held.set_len(len);
                has_room || len <= MIN_REPLY_LEN
            };
            let is_wanted = || !shared.is_stopping();
            let reply = connection.whole_reply(MAX_SILENCE, &is_wanted, &mut has_room);
            if matches!(reply, Err(CallError::TooLong))
                && let Some(part) = batch.pop_front()
            {
                shared.fail(&part, &self.text_of(&text(&CallError::TooLong)));
            }
            let reply = reply?;
            let Some(part) = batch.pop_front() else { break };
            if REFUSALS.iter().any(|refusal| reply.starts_with(refusal)) {
                let error = String::from_utf8_lossy(&reply[1..]);
                shared.retry(part, &self.text_of(error.trim_end()));
            } else {
                part.forward.complete(&part.positions, reply, Some(held));
            }
        }
        Ok(())
    }

    fn open(&self, shared: &Shared, access: &NodeAccess) -> Result<Connection, CallError> {
        let is_wanted = || !shared.is_stopping();
        let mut connection = Connection::open(&self.endpoint, access, &is_wanted)?;
        if self.is_resp3 {
            connection.send(&[b"HELLO", b"3"])?;
            let reply = connection.whole_reply(MAX_SILENCE, &is_wanted, &mut |_| true)?;
            if reply.starts_with(b"-") {
                return Err(CallError::Refused(String::from_utf8_lossy(&reply[1..]).into_owned()));
            }
        }
        connection.send(&[b"CLUSTER", b"FORWARDED"])?;
        connection.reply(&is_wanted)?;
        *self.socket() = connection.socket();
        Ok(connection)
    }

    /// Returns the text of a problem with the node.
    fn text_of(&self, problem: &str) -> String {
        let Endpoint { host, port } = &self.endpoint;
        format!("the node at {host}:{port}: {problem}")
    }
}

fn text(error: &CallError) -> String {
    match error {
        CallError::Io(error) => error.to_string(),
        CallError::Refused(text) => text.clone(),
        CallError::Cancelled => "the server stops".to_owned(),
        CallError::TooLong => "its reply is longer than the free memory".to_owned(),
    }
}
