//! Runs a command, counts it and measures its time.

use super::split::{can_split, is_whole};
use super::{Args, Call, Command, Failure, Found, Result, slow_request};
use crate::cluster::{Admission, Cluster, Refusal};
use crate::state::{ClusterWait, Denied, Keys, Metrics, Permissions, Snapshots};

/// The error for a request for which there is no memory even after the guard was renewed.
pub const OUT_OF_MEMORY: Failure =
    Failure::reply("OOM command not allowed when used memory > 'maxmemory'.");

/// Returns whether a command with this arity accepts this many arguments.
#[inline]
pub(crate) fn takes(arity: i32, len: usize) -> bool {
    match usize::try_from(arity) {
        Ok(arity) => len == arity,
        Err(_) => len >= arity.unsigned_abs() as usize,
    }
}

/// Runs a command, counts it and measures its time.
#[inline]
pub(crate) fn run(call: &mut Call<'_>, Found { command, number }: Found) -> Result {
    let start = call.out.len();
    let settings = &call.server.settings;
    let short =
        command.keys == Keys::ONE && Metrics::is_short_len(call.args.request_len(), settings);
    call.client.metrics.begin(short, settings);
    let result = match refused(call, command) {
        None => (command.run)(call),
        Some(failure) => Err(failure),
    };
    if call.guard.needs_disk() {
        // The command found less than there is.
        call.truncate_output(start);
        return Err(Failure::Full);
    }
    match result {
        Ok(()) => {}
        Err(Failure::Full) => {
            call.truncate_output(start);
            return Err(Failure::Full);
        }
        Err(Failure::Reply(text)) => {
            call.truncate_output(start);
            call.reply().error(text.as_bytes());
            call.client.metrics.error(&text, Some(number), true);
        }
    }
    let reply_len = call.out.len() - start;
    if let Some(ns) = call.client.metrics.end(number, (short, reply_len), settings) {
        note_slow(call, command, ns);
    }
    let connection = &call.client.connection;
    connection.command.set(number as u64 + 1);
    connection.active_ms.set(call.guard.now_ms());
    Ok(())
}

/// Returns the error for a command that this server does not execute with these keys.
#[inline]
pub(crate) fn refused(call: &Call<'_>, command: &Command) -> Option<Failure> {
    if let Some(failure) = refused_by_snapshots(call, command) {
        return Some(failure);
    }
    let cluster = call.server.cluster.as_ref()?;
    if call.admission == Admission::Checked || command.keys == Keys::NONE {
        return None;
    }
    refused_by_cluster(call, command, cluster)
}

/// Returns the error for a command with keys that another node of the cluster serves. Keys of
/// snapshots are served by all nodes.
fn refused_by_cluster(call: &Call<'_>, command: &Command, cluster: &Cluster) -> Option<Failure> {
    let keys = of_cluster(call, call.args.keys(command.keys));
    let is_permitted = call.admission != Admission::NotPermitted;
    let refusal = cluster.refuse(is_permitted, command.flags.writes, keys)?;
    forward_or_refuse(call, command, cluster, refusal)
}

/// Lets a request wait for the reply of the owner of its slot, if it is forwarded, and otherwise
/// returns its error. One whose keys belong to different slots is split, or executed if this node
/// serves all of them.
#[cold]
fn forward_or_refuse(
    call: &Call<'_>,
    command: &Command,
    cluster: &Cluster,
    refusal: Refusal,
) -> Option<Failure> {
    let client = &call.client;
    let forwards = cluster.forwards_resp() && !client.is_forwarded && !client.state.queues;
    let refusal = match refusal {
        Refusal::CrossSlot if forwards || client.is_forwarded => {
            if !can_split(command) {
                return Some(Failure::Reply(refusal.text()));
            }
            if !is_whole(command, call.args) {
                // It is executed, and fails before it changes anything.
                return None;
            }
            let keys = of_cluster(call, call.args.keys(command.keys));
            let is_permitted = call.admission != Admission::NotPermitted;
            cluster.refuse_each(is_permitted, command.flags.writes, keys)?
        }
        refusal => refusal,
    };
    let is_elsewhere = matches!(refusal, Refusal::Moved(..) | Refusal::NotServed);
    if forwards && is_elsewhere && command.name != "watch" {
        client.cluster_wait.set(ClusterWait::Owner);
        return Some(Failure::Full);
    }
    Some(failure(call, &refusal))
}

/// Returns the error for the keys of a transaction that another node of the cluster serves.
pub(crate) fn refuse_transaction<'k>(
    call: &Call<'_>,
    cluster: &Cluster,
    keys: impl Iterator<Item = &'k [u8]> + Clone,
    writes: bool,
) -> Option<Failure> {
    let is_permitted = call.admission != Admission::NotPermitted;
    let refusal = cluster.refuse(is_permitted, writes, of_cluster(call, keys))?;
    Some(failure(call, &refusal))
}

/// Returns the keys whose slots the nodes share. Each node serves keys of snapshots.
#[inline]
fn of_cluster<'k>(
    call: &Call<'_>,
    keys: impl Iterator<Item = &'k [u8]> + Clone,
) -> impl Iterator<Item = &'k [u8]> + Clone {
    keys.filter(|key| call.server.snapshot_key(key).is_none())
}

/// Returns the error for keys that this node does not serve. A request that has to wait for its
/// slot is executed again later. A node that has forwarded one sends it again instead, so that
/// others do not wait behind it.
pub(crate) fn failure(call: &Call<'_>, refusal: &Refusal) -> Failure {
    if *refusal == Refusal::Waits && call.client.is_forwarded {
        return Failure::reply("TRYAGAIN Hash slot is about to be served");
    }
    if *refusal == Refusal::Waits {
        call.client.cluster_wait.set(ClusterWait::Slot);
        return Failure::Full;
    }
    Failure::Reply(refusal.text())
}

/// Returns the error for a command that has a key of a snapshot, but writes, or cannot read
/// snapshots.
#[inline]
fn refused_by_snapshots(call: &Call<'_>, command: &Command) -> Option<Failure> {
    match &call.server.snapshots {
        Some(snapshots) if !command.flags.reads_snapshots => {
            refused_by_its_key(call, command, snapshots)
        }
        _ => None,
    }
}

#[inline(never)]
fn refused_by_its_key(
    call: &Call<'_>,
    command: &Command,
    snapshots: &Snapshots,
) -> Option<Failure> {
    let key = call.args.keys(command.keys).find(|key| snapshots.key(key).is_some())?;
    if command.flags.writes {
        let text = snapshots.refuse_write(key)?;
        return Some(Failure::Reply(format!("ERR {text}").into()));
    }
    let text = format!("ERR the command '{}' does not read keys of snapshots", command.name);
    Some(Failure::Reply(text.into()))
}

#[cold]
#[inline(never)]
fn note_slow(call: &Call<'_>, command: &Command, ns: u64) {
    let limit = u64::try_from(call.server.settings.slower_than_us());
    // Commands inside `EXEC` have their own entries.
    if limit.is_ok_and(|us| ns / 1000 >= us) && command.name != "exec" {
        slow_request::add(call, command, ns / 1000);
    }
}

/// Checks that permissions include a request.
pub(crate) fn check(
    permissions: &Permissions,
    found: Found,
    args: Args<'_>,
) -> std::result::Result<(), Denied> {
    permissions.check(found.number, found.command.flags, args.keys(found.command.keys))
}
