//! `CLUSTER MEMCACHED`: requests of memcached clients that another node forwards to this one.

use crate::cluster::Admission;
use crate::resp::commands::run::failure;
use crate::resp::commands::{Call, Failure, Found, Result};
use crate::state::{ForwardedError, ForwardedRequests};
use std::sync::Arc;

const INVALID: Failure = Failure::reply("ERR expected a line of memcached, and its value");
const DENIED: Failure = Failure::reply("NOPERM this user has no permissions to run the request");

fn requests(call: &Call<'_>) -> Option<Arc<dyn ForwardedRequests>> {
    call.server.cluster.as_ref()?;
    call.server.forwarded_requests.clone()
}

/// `CLUSTER MEMCACHED line [value]`: replies with a string, which is the reply of memcached.
pub(super) fn memcached(call: &mut Call<'_>) -> Result {
    let disabled = Failure::reply("ERR This instance has cluster support disabled");
    let requests = requests(call).ok_or(disabled)?;
    let is_permitted = call.admission != Admission::NotPermitted;
    let request = (call.args.get(2), call.args.get(3));
    let (client, server) = (&*call.client, call.server);
    let may = |command: &str, keys: &[&[u8]]| client.may(server, command, keys.iter().copied());
    match requests.execute(call.place(), is_permitted, &may, request) {
        Ok(reply) => {
            call.reply().bulk(&reply);
            Ok(())
        }
        Err(ForwardedError::Full) => Err(Failure::Full),
        Err(ForwardedError::Refused(refusal)) => Err(failure(call, &refusal)),
        Err(ForwardedError::Denied) => Err(DENIED),
        Err(ForwardedError::Invalid) => Err(INVALID),
    }
}

/// Replies to such a request that found no memory, if it is one: with the error of memcached.
pub(in crate::resp::commands) fn out_of_memory(call: &mut Call<'_>, found: Option<Found>) -> bool {
    let is_it = found.is_some_and(|found| found.command.name == "cluster")
        && call.args.get(1).eq_ignore_ascii_case(b"memcached");
    let Some(requests) = is_it.then(|| requests(call)).flatten() else { return false };
    let request = (call.args.get(2), call.args.get(3));
    let Some(reply) = requests.out_of_memory(call.place(), request) else { return false };
    call.reply().bulk(&reply);
    true
}
