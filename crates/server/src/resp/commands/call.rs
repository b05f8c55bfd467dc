//! One request, on its way to its answer.

use super::{Args, Result};
use crate::output::MIN_VALUE_REF_LEN;
use crate::resp::{Reply, Span};
use crate::state::{Flags, Keys, Server};
use nuthatch_cache::{Guard, Item};
use std::fmt;

/// One command.
#[derive(Debug)]
pub struct Command {
    /// Its name, in lower case.
    pub name: &'static str,
    /// How many arguments it takes, its name among them; at least so many where it is negative.
    pub arity: i32,
    /// Where its keys are.
    pub keys: Keys,
    /// What else is known of it.
    pub flags: Flags,
    /// What it does.
    pub run: fn(&mut Call<'_>) -> Result,
}

impl Command {
    /// A command whose only key is its first argument.
    pub(crate) const fn of_key(
        name: &'static str,
        arity: i32,
        flags: Flags,
        run: fn(&mut Call<'_>) -> Result,
    ) -> Self {
        Self { name, arity, keys: Keys::ONE, flags, run }
    }
}

/// A command that was found, and the number under which it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The command.
    pub command: &'static Command,
    pub(crate) number: usize,
}

/// What RESP remembers of a connection.
#[derive(Debug, Default)]
pub struct Session {
    /// What waits for `EXEC`, and what is watched for it.
    pub(crate) transaction: Transaction,
}

impl crate::state::Session for Session {
    #[inline]
    fn queued_len(&self) -> usize {
        self.transaction.bytes
    }
}

/// The state of a connection.
pub type Client = crate::state::Client<Session>;

/// What waits for `EXEC`, and what is watched for it.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Vec<Queued>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) bytes: usize,
    /// A request was refused: `EXEC` will be, too.
    pub(crate) aborted: bool,
}

/// A request, copied.
pub(crate) struct Queued {
    pub(crate) found: Found,
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: Vec<Span>,
}

impl fmt::Debug for Queued {
    /// Without the arguments: they may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued").field("name", &self.found.command.name).finish_non_exhaustive()
    }
}

/// A key, and what tells its item from others; nothing if it had no item.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) key: Box<[u8]>,
    pub(crate) item: Option<Seen>,
}

/// The number of an item, and when it expires: that can change without the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) cas: Option<u64>,
    pub(crate) expires_ms: Option<u64>,
}

impl Seen {
    pub(crate) fn new(item: Item<'_>) -> Self {
        Self { cas: item.cas(), expires_ms: item.expires_ms() }
    }
}

/// One request, and all that a command needs to answer it.
pub struct Call<'a> {
    /// The cache.
    pub guard: &'a Guard<'a>,
    /// The connection the request came on.
    pub client: &'a mut Client,
    /// What all connections share.
    pub server: &'a Server,
    /// Name and arguments.
    pub args: Args<'a>,
    /// Where the answer goes, behind those of earlier requests.
    pub out: &'a mut Vec<u8>,
}

impl Call<'_> {
    /// Writes the answer.
    #[inline]
    pub fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.out, self.client.version)
    }

    /// Answers with the value of an item.
    #[inline]
    pub(crate) fn reply_value(&mut self, item: &Item<'_>) {
        let value = item.value();
        if value.len() < MIN_VALUE_REF_LEN {
            return self.reply().bulk(value);
        }
        self.reply().bulk_header(value.len());
        self.client.zero_copy.value(self.guard, &self.server.cache, item, self.out);
        self.reply().bulk_end();
    }

    /// How long the answers may become with this one, if it may be longer by far than its request.
    pub(crate) fn max_out_len(&self) -> usize {
        self.out.len().saturating_add(self.server.max_reply_len())
    }

    /// Takes back what was answered from `start` on.
    #[inline]
    pub(crate) fn truncate_output(&mut self, start: usize) {
        self.client.zero_copy.truncate_output(self.out, start);
    }
}
