//! `CLUSTER MEMBERS`, `JOIN`, `DRAIN` and `FORGET`: for operators, and `nuthatch cluster`.

use crate::resp::commands::{Call, Failure, Result};
use nuthatch_cluster::member::Command;
use nuthatch_cluster::node_id::NodeId;

const LAST_NODE: Failure =
    Failure::reply("ERR expected another active node that takes the slots, found none");
const NOT_JOINED: Failure =
    Failure::reply("ERR the server has just started, and is no node of its cluster yet; try again");

/// `CLUSTER MEMBERS`: a map of keys and values. Nodes without a lease whose slots have no other
/// owner yet have keys that begin with `departed/`.
pub(crate) fn members(call: &mut Call<'_>) -> Result {
    let entries = call.cluster()?.entries();
    let mut reply = call.reply();
    reply.map(entries.len());
    for (key, value) in entries {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// `CLUSTER JOIN`
pub(crate) fn join(call: &mut Call<'_>) -> Result {
    request(call, Command::Join)
}

/// `CLUSTER DRAIN`
pub(crate) fn drain(call: &mut Call<'_>) -> Result {
    request(call, Command::Drain)
}

/// `CLUSTER FORGET node-id`
pub(crate) fn forget(call: &mut Call<'_>) -> Result {
    let text = String::from_utf8_lossy(call.args.get(2));
    let cluster = call.cluster()?;
    match text.parse::<NodeId>().ok().filter(|id| cluster.knows(*id)) {
        Some(id) if !cluster.has_active_nodes_beside(id) => Err(LAST_NODE),
        Some(id) => request(call, Command::Forget(id)),
        None => Err(Failure::Reply(format!("ERR Unknown node {text}").into())),
    }
}

/// Passes a request to the membership. It is executed after the reply.
fn request(call: &mut Call<'_>, command: Command) -> Result {
    if !call.cluster()?.request(command) {
        return Err(NOT_JOINED);
    }
    call.reply().ok();
    Ok(())
}
