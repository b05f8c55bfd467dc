//! `CLUSTER TRANSFER`: items of slots that another node sends to this one.

use crate::cluster::{Cluster, Record, TransferRefusal, records, write_of};
use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::{Call, Failure, Result};
use crate::resp::integer;
use nuthatch_cache::Error;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::{SlotSet, slot_of};
use std::str::from_utf8;

const NOT_READY: Failure = Failure::reply("TRYAGAIN the slots are not ready for their items");
const UNKNOWN: Failure = Failure::reply("ERR no such transfer is open");
const INVALID_NODE: Failure = Failure::reply("ERR expected the identifier of a node");
const INVALID_SLOTS: Failure = Failure::reply("ERR expected slots such as 0-5,7");
const INVALID_FRAME: Failure = Failure::reply("ERR expected records of items of these slots");

/// The part of a transfer that a request belongs to.
type Identity = (NodeId, u64);

/// `CLUSTER TRANSFER node transfer BEGIN slots|ITEMS part [part ...]|COMPLETE`
pub(super) fn transfer(call: &mut Call<'_>) -> Result {
    let cluster = call.cluster()?;
    let from = from_utf8(call.args.get(2)).ok().and_then(|text| text.parse().ok());
    let token = integer(call.args.get(3)).ok_or(SYNTAX)?;
    let identity = (from.ok_or(INVALID_NODE)?, token.cast_unsigned());
    let step = call.args.get(4).to_ascii_uppercase();
    match (&step[..], call.args.len()) {
        (b"BEGIN", 6) => begin(call, &cluster, identity),
        (b"ITEMS", 6) => items(call, &cluster, identity, call.args.get(5)),
        // A frame that is longer than an argument may be.
        (b"ITEMS", 7..) => {
            let parts: Vec<&[u8]> = (5..call.args.len()).map(|at| call.args.get(at)).collect();
            items(call, &cluster, identity, &parts.concat())
        }
        (b"COMPLETE", 5) => {
            cluster.complete_transfer(identity).map_err(failure)?;
            call.reply().ok();
            Ok(())
        }
        _ => Err(SYNTAX),
    }
}

/// Replies with the maximum length of an argument in bytes, and of a value.
fn begin(call: &mut Call<'_>, cluster: &Cluster, identity: Identity) -> Result {
    let slots = from_utf8(call.args.get(5)).ok().and_then(|text| text.parse::<SlotSet>().ok());
    cluster.begin_transfer(identity, &slots.ok_or(INVALID_SLOTS)?).map_err(failure)?;
    let (max_len, _) = call.server.value_limit();
    call.reply().simple(format!("OK {max_len}").as_bytes());
    Ok(())
}

/// Stores the items of a frame. It may be executed again if it finds no memory at first.
fn items(call: &mut Call<'_>, cluster: &Cluster, identity: Identity, frame: &[u8]) -> Result {
    let slots = cluster.slots_of_transfer(identity).map_err(failure)?;
    let (mut stored, mut left_out) = (0, 0);
    for record in records(frame) {
        let record = record.filter(|record| slots.contains(slot_of(record.key())));
        let record = record.ok_or(INVALID_FRAME)?;
        if call.server.snapshot_key(record.key()).is_some() {
            continue;
        }
        match store(call, &record) {
            Ok(()) => stored += 1,
            Err(Error::TooLong { .. }) => {
                // There may be an earlier value, which is outdated.
                call.guard.remove(record.key());
                left_out += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    cluster.note_received(stored, left_out, frame.len());
    call.reply().ok();
    Ok(())
}

fn store(call: &Call<'_>, record: &Record<'_>) -> std::result::Result<(), Error> {
    let Record::Item { key, value, frequency, flags, expires_ms, cas } = *record else {
        call.guard.remove(record.key());
        return Ok(());
    };
    // The guard began before, so it keeps the dictionary of the encoded value.
    let value = call.server.compression.encode(key, value);
    let write = write_of(flags, expires_ms, cas).compressed(value.is_compressed());
    call.guard.receive(key, value.bytes(), &write, frequency.into())
}

fn failure(refusal: TransferRefusal) -> Failure {
    match refusal {
        TransferRefusal::NotReady => NOT_READY,
        TransferRefusal::Unknown => UNKNOWN,
    }
}
