//! Transactions: requests that are executed together, unless a watched key has changed.
//!
//! `EXEC` runs while no other thread holds an epoch guard, so that no other client sees a part of
//! its effects.
//!
//! A watched key has changed if its item at `EXEC` is another one than at `WATCH`. A key that was
//! missing at `WATCH`, and was created and removed before `EXEC`, has not changed; in Redis it has.

use crate::resp::commands::call::{Queued, Seen, Transaction, Watched};
use crate::resp::commands::failure::REPLY_TOO_LONG;
use crate::resp::commands::run::{OUT_OF_MEMORY, check, refuse_transaction, run};
use crate::resp::commands::{Args, Call, Client, Command, Failure, Found, Result};
use crate::span::Span;
use crate::state::values::Place;
use crate::state::{Denied, Flags, Keys, Server, State, Version};

const AT_ONCE: Flags = Flags { never_queued: true, ..Flags::READS };

pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "multi", arity: 1, keys: Keys::NONE, flags: AT_ONCE, run: multi },
    Command {
        name: "exec",
        arity: 1,
        keys: Keys::NONE,
        flags: Flags { exclusive: true, ..AT_ONCE },
        run: exec,
    },
    Command { name: "discard", arity: 1, keys: Keys::NONE, flags: AT_ONCE, run: discard },
    Command {
        name: "watch",
        arity: -2,
        keys: Keys::ALL,
        flags: Flags { reads_snapshots: true, ..AT_ONCE },
        run: watch,
    },
    Command { name: "unwatch", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: unwatch },
];

/// Maximum bytes of the requests and watched keys of a transaction.
const MAX_BYTES: usize = 64 << 20;

impl Transaction {
    /// Returns the number of queued requests.
    pub(crate) fn len(&self) -> usize {
        self.queued.len()
    }

    /// Returns the bytes of requests and keys.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes the next `EXEC` fail.
    pub(crate) fn abort(&mut self) {
        self.aborted = true;
    }

    /// Copies a request to the queue.
    pub(crate) fn queue(&mut self, found: Found, args: Args<'_>) -> Result {
        let len = args.from(0).map(<[u8]>::len).sum::<usize>();
        self.take_room(len + args.len() * size_of::<Span>() + size_of::<Queued>())?;
        let mut bytes = Vec::with_capacity(len);
        let mut spans = Vec::with_capacity(args.len());
        for arg in args.from(0) {
            let start = bytes.len();
            bytes.extend_from_slice(arg);
            spans.push(Span::between(start, bytes.len()));
        }
        self.queued.push(Queued { found, bytes, spans });
        Ok(())
    }

    fn take_room(&mut self, len: usize) -> Result {
        if self.bytes + len > MAX_BYTES {
            return Err(Failure::reply("ERR the transaction exceeds 64 MiB"));
        }
        self.bytes += len;
        Ok(())
    }

    fn watch(&mut self, (guard, server): Place<'_>, key: &[u8]) -> Result {
        if self.watched.iter().any(|watched| *watched.key == *key) {
            return Ok(());
        }
        let item = match server.snapshot_key(key) {
            Some(key) => key.digest()?.map(Seen::Snapshot),
            // Looks up the item first, since there may be no memory for its CAS number.
            None => guard.get_with_cas(key)?.map(|(item, _)| Seen::new(item)),
        };
        self.take_room(key.len() + size_of::<Watched>())?;
        self.watched.push(Watched { key: key.into(), item, losses: losses(server) });
        Ok(())
    }

    fn has_changed(&self, (guard, server): Place<'_>) -> bool {
        self.watched.iter().any(|watched| {
            if let Some(key) = server.snapshot_key(&watched.key) {
                return key.digest().map(|digest| digest.map(Seen::Snapshot)) != Ok(watched.item);
            }
            let has_same_item = guard.peek(&watched.key).map(Seen::new) == watched.item;
            !has_same_item || watched.losses != losses(server)
        })
    }
}

/// Returns how often this node of a cluster has lost slots.
fn losses(server: &Server) -> u64 {
    server.cluster.as_ref().map_or(0, |cluster| cluster.losses())
}

impl Client {
    /// Resets the client to the state after connecting. Its number, and the name and version of its
    /// library, do not change.
    pub(crate) fn reset(&mut self) {
        self.set_version(Version::default());
        self.state = State::default();
        self.user = None;
        self.is_forwarded = false;
        self.session.transaction = Transaction::default();
        self.note_queued();
        self.connection.update_info(|info| {
            info.name.clear();
            info.user.clear();
        });
        self.connection.unevictable.set(0);
        self.connection.untouching.set(0);
    }

    /// Drops queued requests and watched keys.
    pub(crate) fn leave_transaction(&mut self) {
        self.session.transaction = Transaction::default();
        self.state.queues = false;
        self.note_queued();
    }

    /// Publishes the number of queued requests.
    pub(crate) fn note_queued(&self) {
        let queued = if self.state.queues { 1 + self.session.transaction.len() as u64 } else { 0 };
        self.connection.queued.set(queued);
        self.connection.queued_len.set(self.session.transaction.bytes() as u64);
    }
}

/// `MULTI`
fn multi(call: &mut Call<'_>) -> Result {
    if call.client.state.queues {
        return Err(Failure::reply("ERR MULTI calls can not be nested"));
    }
    call.client.state.queues = true;
    call.client.session.transaction.aborted = false;
    call.client.note_queued();
    call.reply().ok();
    Ok(())
}

/// `DISCARD`
fn discard(call: &mut Call<'_>) -> Result {
    if !call.client.state.queues {
        return Err(Failure::reply("ERR DISCARD without MULTI"));
    }
    call.client.leave_transaction();
    call.reply().ok();
    Ok(())
}

/// `WATCH key...`
fn watch(call: &mut Call<'_>) -> Result {
    if call.client.state.queues {
        return Err(Failure::reply("ERR WATCH inside MULTI is not allowed"));
    }
    for key in call.args.from(1) {
        call.client.session.transaction.watch(call.place(), key)?;
    }
    call.reply().ok();
    Ok(())
}

/// `UNWATCH`
fn unwatch(call: &mut Call<'_>) -> Result {
    let transaction = &mut call.client.session.transaction;
    transaction.watched.clear();
    if transaction.queued.is_empty() {
        transaction.bytes = 0;
    }
    call.reply().ok();
    Ok(())
}

/// `EXEC`
fn exec(call: &mut Call<'_>) -> Result {
    if !call.client.state.queues {
        return Err(Failure::reply("ERR EXEC without MULTI"));
    }
    let refused = refused_transaction(call, &call.client.session.transaction);
    if refused == Some(Failure::Full) {
        // The transaction is kept until it is executed again.
        return Err(Failure::Full);
    }
    let transaction = std::mem::take(&mut call.client.session.transaction);
    call.client.leave_transaction();
    if transaction.aborted {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(Failure::reply(text));
    }
    if let Some(failure) = refused {
        return Err(failure);
    }
    if transaction.has_changed(call.place()) {
        call.reply().null_array();
        return Ok(());
    }
    let max = call.max_out_len();
    call.reply().array(transaction.queued.len());
    for queued in &transaction.queued {
        let start = call.out.len();
        let mut inner = Call {
            guard: call.guard,
            client: &mut *call.client,
            server: call.server,
            args: Args::new(&queued.bytes, &queued.spans),
            out: &mut *call.out,
            admission: call.admission.within_transaction(),
            prefetched: &[],
        };
        execute_queued(&mut inner, queued.found);
        if call.out.len() > max {
            // The command was executed, but its reply does not fit.
            call.truncate_output(start);
            if let Failure::Reply(text) = REPLY_TOO_LONG {
                call.reply().error(text.as_bytes());
            }
        }
    }
    Ok(())
}

/// Returns the error for a transaction whose keys another node of the cluster serves. All its keys
/// belong to one slot.
fn refused_transaction(call: &Call<'_>, transaction: &Transaction) -> Option<Failure> {
    let cluster = call.server.cluster.as_ref()?;
    let writes = transaction.queued.iter().any(|queued| queued.found.command.flags.writes);
    refuse_transaction(call, cluster, transaction.queued.iter().flat_map(Queued::keys), writes)
}

impl Queued {
    /// Returns the keys of the request.
    fn keys(&self) -> impl Iterator<Item = &[u8]> + Clone {
        Args::new(&self.bytes, &self.spans).keys(self.found.command.keys)
    }
}

/// The error for a command in a transaction that needs items on disk which it does not name.
const NEEDS_DISK: Failure =
    Failure::reply("ERR the command needs items on disk. Send it outside of MULTI.");

/// Executes a queued request. It always has a reply: another attempt under a new guard would show
/// other clients a part of the transaction.
fn execute_queued(call: &mut Call<'_>, found: Found) {
    if let Some(denied) = denied(call, found) {
        // An `AUTH` was queued before the command.
        let reason = match denied {
            Denied::All | Denied::Command => "no permission to execute the command or subcommand",
            Denied::Key => "no permission to touch the specified keys",
        };
        let text = format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
             EXEC call. This command is no longer allowed for the following reason: {reason}"
        );
        call.client.metrics.error(&text, Some(found.number), false);
        call.reply().error(text.as_bytes());
    } else if run(call, found) == Err(Failure::Full) {
        // The keys of all commands were read from disk before, so this one has none, as `SCAN`.
        let needs_disk = !call.guard.take_on_disk().is_empty();
        let failure = if needs_disk { NEEDS_DISK } else { OUT_OF_MEMORY };
        let Failure::Reply(text) = failure else { return };
        call.client.metrics.error(&text, Some(found.number), false);
        call.reply().error(text.as_bytes());
    }
}

impl Transaction {
    /// Calls `each` with the keys of the queued requests and the watched keys.
    pub(crate) fn for_each_key(&self, mut each: impl FnMut(&[u8])) {
        for queued in &self.queued {
            queued.keys().for_each(&mut each);
        }
        self.watched.iter().for_each(|watched| each(&watched.key));
    }
}

fn denied(call: &Call<'_>, found: Found) -> Option<Denied> {
    if call.client.state.trusted {
        return None;
    }
    let Some(user) = &call.client.user else { return Some(Denied::All) };
    check(&user.permissions, found, call.args).err()
}
