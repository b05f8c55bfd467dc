//! `CLUSTER`: the slots of the cluster and its nodes, as clients of Redis Cluster read them.

use super::cluster_members::{drain, forget, join, members};
use super::memcached::memcached;
use super::transfer::transfer;
use crate::cluster::{Admission, CLUSTER_FIELDS, Coverage, NodeSlots};
use crate::resp::commands::container::{self, part};
use crate::resp::commands::failure::REPLY_TOO_LONG;
use crate::resp::commands::{Call, Command, Failure, NOT_AN_INTEGER, Result};
use crate::resp::{Reply, Version, integer};
use crate::state::{Flags, Keys};
use nuthatch_cluster::slot::{SLOTS, slot_of};
use std::fmt::Write;

/// Commands of clients for the connection itself. Redis has replicas, which these concern.
pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "readonly", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: accept },
    Command { name: "readwrite", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: accept },
    Command { name: "asking", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: accept },
];

pub(crate) const SUBCOMMANDS: &[Command] = &[
    part("cluster|slots", 2, slots),
    part("cluster|shards", 2, shards),
    part("cluster|nodes", 2, nodes),
    part("cluster|info", 2, info),
    part("cluster|keyslot", 3, key_slot),
    part("cluster|countkeysinslot", 3, count_keys),
    part("cluster|getkeysinslot", 4, get_keys),
    Command {
        name: "cluster|memcached",
        arity: -3,
        keys: Keys::NONE,
        flags: Flags::WRITES,
        run: memcached,
    },
    part("cluster|myid", 2, my_id),
    part("cluster|links", 2, links),
    Command {
        name: "cluster|transfer",
        arity: -5,
        keys: Keys::NONE,
        // Not in the group @write: it stores items of any key.
        flags: Flags::READS,
        run: transfer,
    },
    part("cluster|members", 2, members),
    part("cluster|join", 2, join),
    part("cluster|drain", 2, drain),
    part("cluster|forget", 3, forget),
    part("cluster|forwarded", 2, forwarded),
    part("cluster|help", 2, help),
];

const HELP: &[&str] = &[
    "CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>. Examines all keys of the node.",
    "DRAIN",
    "    Move all slots of this node to other nodes.",
    "FORGET <node-id>",
    "    Let a node end its lease: other nodes take its slots without their items.",
    "FORWARDED",
    "    Refuse requests of this connection for slots of other nodes, instead of forwarding them.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot. Examines all keys of the node.",
    "INFO",
    "    Return information about the cluster.",
    "JOIN",
    "    Let this node take its part of the slots.",
    "KEYSLOT <key>",
    "    Return the hash slot for <key>.",
    "LINKS",
    "    Return the links between nodes: none, since nodes meet in etcd.",
    "MEMCACHED <line> [<value>]",
    "    Execute a request of memcached that another node forwards. For nodes only.",
    "MEMBERS",
    "    Return the keys of the cluster in etcd, as this node knows them, and their values.",
    "MYID",
    "    Return the node id.",
    "NODES",
    "    Return cluster configuration seen by node. Output format:",
    "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
    "SHARDS",
    "    Return information about slot range mappings and the nodes associated with them.",
    "TRANSFER <node> <transfer> BEGIN <slots>|ITEMS <part> [<part> ...]|COMPLETE",
    "    Store the items of slots that another node sends. For nodes only.",
    "SLOTS",
    "    Return information about slots range mappings. Each range is made of:",
    "    start, end, address, port and id of its node",
    "HELP",
    "    Prints this help.",
];

/// Items that are examined between checks of the length of a reply.
const STEP: usize = 4096;

const INVALID_SLOT: Failure = Failure::reply("ERR Invalid slot");
const INVALID_SLOT_OR_COUNT: Failure = Failure::reply("ERR Invalid slot or number of keys");

/// `READONLY`, `READWRITE` and `ASKING`: there are no replicas, and no slot has two nodes.
fn accept(call: &mut Call<'_>) -> Result {
    call.cluster()?;
    call.reply().ok();
    Ok(())
}

/// `CLUSTER FORWARDED`: connections of other nodes begin with this, and clients of Redis Cluster
/// may, since they follow `MOVED`.
fn forwarded(call: &mut Call<'_>) -> Result {
    call.cluster()?;
    call.client.is_forwarded = true;
    call.reply().ok();
    Ok(())
}

/// `CLUSTER HELP`
fn help(call: &mut Call<'_>) -> Result {
    call.cluster()?;
    container::help(call, HELP);
    Ok(())
}

/// `CLUSTER MYID`
fn my_id(call: &mut Call<'_>) -> Result {
    let id = call.cluster()?.id().to_string();
    call.reply().bulk(id.as_bytes());
    Ok(())
}

/// `CLUSTER LINKS`
fn links(call: &mut Call<'_>) -> Result {
    call.cluster()?;
    call.reply().array(0);
    Ok(())
}

/// `CLUSTER KEYSLOT key`
fn key_slot(call: &mut Call<'_>) -> Result {
    call.cluster()?;
    let slot = slot_of(call.args.get(2));
    call.reply().integer(slot.into());
    Ok(())
}

/// `CLUSTER SLOTS`
fn slots(call: &mut Call<'_>) -> Result {
    let coverage = call.cluster()?.coverage();
    let ranges = coverage.ranges();
    let mut reply = call.reply();
    reply.array(ranges.len());
    for (range, node) in ranges {
        reply.array(3);
        reply.integer(range.first.into());
        reply.integer(range.last.into());
        reply.array(4);
        reply.bulk(node.endpoint.host.as_bytes());
        reply.integer(node.endpoint.port.into());
        reply.bulk(node.id.to_string().as_bytes());
        // Further names and addresses of the node.
        reply.array(0);
    }
    Ok(())
}

/// `CLUSTER SHARDS`
fn shards(call: &mut Call<'_>) -> Result {
    let Coverage { nodes, .. } = call.cluster()?.coverage();
    let mut reply = call.reply();
    reply.array(nodes.len());
    for node in &nodes {
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * node.ranges.len());
        for range in &node.ranges {
            reply.integer(range.first.into());
            reply.integer(range.last.into());
        }
        reply.bulk(b"nodes");
        reply.array(1);
        shard_node(&mut reply, node);
    }
    Ok(())
}

fn shard_node(reply: &mut Reply<'_>, node: &NodeSlots) {
    let host = node.endpoint.host.as_bytes();
    reply.map(7);
    reply.bulk(b"id");
    reply.bulk(node.id.to_string().as_bytes());
    reply.bulk(b"port");
    reply.integer(node.endpoint.port.into());
    reply.bulk(b"ip");
    reply.bulk(host);
    reply.bulk(b"endpoint");
    reply.bulk(host);
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"replication-offset");
    reply.integer(0);
    reply.bulk(b"health");
    reply.bulk(if node.is_present { b"online" } else { b"fail" });
}

/// `CLUSTER NODES`
fn nodes(call: &mut Call<'_>) -> Result {
    let cluster = call.cluster()?;
    let mut text = String::new();
    for node in &cluster.coverage().nodes {
        let NodeSlots { id, endpoint, node_port, ranges, epoch, is_present } = node;
        let (flags, link) = match (*id == cluster.id(), is_present) {
            (true, _) => ("myself,master", "connected"),
            (false, true) => ("master", "connected"),
            (false, false) => ("master,fail", "disconnected"),
        };
        let (host, port) = (&endpoint.host, endpoint.port);
        // Writing to a `String` never fails.
        let _ = write!(text, "{id} {host}:{port}@{node_port} {flags} - 0 0 {epoch} {link}");
        for range in ranges {
            let _ = write!(text, " {range}");
        }
        text.push('\n');
    }
    call.reply().verbatim(text.as_bytes());
    Ok(())
}

/// `CLUSTER INFO`
fn info(call: &mut Call<'_>) -> Result {
    let cluster = call.cluster()?;
    let coverage = cluster.coverage();
    let covered = coverage.covered();
    let is_permitted = call.admission != Admission::NotPermitted;
    let state = if is_permitted && covered == SLOTS { "ok" } else { "fail" };
    let owners = coverage.nodes.iter().filter(|node| !node.ranges.is_empty()).count();
    let current_epoch = coverage.nodes.iter().map(|node| node.epoch).max().unwrap_or_default();
    let own = coverage.nodes.iter().find(|node| node.id == cluster.id());
    let fields = [
        ("cluster_state", state.to_owned()),
        ("cluster_slots_assigned", coverage.assigned.to_string()),
        ("cluster_slots_ok", covered.to_string()),
        ("cluster_slots_pfail", 0.to_string()),
        ("cluster_slots_fail", coverage.assigned.saturating_sub(covered).to_string()),
        ("cluster_known_nodes", coverage.nodes.len().to_string()),
        ("cluster_size", owners.to_string()),
        ("cluster_current_epoch", current_epoch.to_string()),
        ("cluster_my_epoch", own.map_or(0, |own| own.epoch).to_string()),
    ];
    let mut text = String::new();
    for (name, value) in fields {
        let _ = write!(text, "{name}:{value}\r\n");
    }
    let report = cluster.report_with(&coverage);
    for field in CLUSTER_FIELDS {
        let _ = write!(text, "{}:{}\r\n", field.info, (field.value)(&report));
    }
    call.reply().verbatim(text.as_bytes());
    Ok(())
}

/// Returns the slot of an argument.
fn slot(call: &Call<'_>, invalid: Failure) -> Result<u16> {
    let slot = integer(call.args.get(2)).ok_or(NOT_AN_INTEGER)?;
    let slot = u16::try_from(slot).ok().filter(|slot| usize::from(*slot) < SLOTS);
    slot.ok_or(invalid)
}

/// `CLUSTER COUNTKEYSINSLOT slot`
fn count_keys(call: &mut Call<'_>) -> Result {
    call.cluster()?;
    let slot = slot(call, INVALID_SLOT)?;
    let mut count = 0;
    for_each_key(call, slot, |_| {
        count += 1;
        true
    });
    call.reply().integer(count);
    Ok(())
}

/// `CLUSTER GETKEYSINSLOT slot count`
fn get_keys(call: &mut Call<'_>) -> Result {
    call.cluster()?;
    let slot = slot(call, INVALID_SLOT_OR_COUNT)?;
    let max = integer(call.args.get(3)).ok_or(NOT_AN_INTEGER)?;
    let max = usize::try_from(max).map_err(|_| INVALID_SLOT_OR_COUNT)?;
    // Keys are copied once, so both copies exist for a moment.
    let max_len = call.server.max_reply_len() / 2;
    let (mut count, mut keys) = (0, Vec::new());
    for_each_key(call, slot, |key| {
        if count < max && keys.len() <= max_len {
            Reply::new(&mut keys, Version::default()).bulk(key);
            count += 1;
        }
        count < max && keys.len() <= max_len
    });
    if keys.len() > max_len {
        return Err(REPLY_TOO_LONG);
    }
    let mut reply = call.reply();
    reply.array(count);
    reply.append(&keys);
    Ok(())
}

/// Calls `each` with keys of the cache that belong to a slot, until it returns false. It may be
/// called a few more times after that.
fn for_each_key(call: &Call<'_>, slot: u16, mut each: impl FnMut(&[u8]) -> bool) {
    let (mut cursor, mut has_more) = (0, true);
    loop {
        cursor = call.guard.scan_in_memory(cursor, STEP, |item| {
            let key = item.key();
            if slot_of(key) == slot && call.server.snapshot_key(key).is_none() {
                has_more &= each(key);
            }
        });
        if cursor == 0 || !has_more {
            return;
        }
    }
}
