//! Requests and responses as messages of the v3 API.

use super::proto;
use super::proto::compare::{CompareResult, CompareTarget, TargetUnion};
use super::proto::event::EventType;
use super::proto::request_op::Request as Operation;
use crate::request::{Change, Compare, KeyValue, Txn, Write};

/// Returns a read of one key, or of all keys with a prefix.
pub(super) fn range(key: &str, is_prefix: bool) -> proto::RangeRequest {
    let range_end = if is_prefix { end_of(key) } else { Vec::new() };
    proto::RangeRequest { key: key.as_bytes().to_vec(), range_end, ..Default::default() }
}

/// Returns the first key after all keys with a prefix.
pub(super) fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // A single zero byte stands for the end of all keys.
    vec![0]
}

pub(super) fn txn(txn: &Txn) -> proto::TxnRequest {
    proto::TxnRequest {
        compare: txn.compares.iter().map(compare).collect(),
        success: txn.writes.iter().map(operation).collect(),
        failure: Vec::new(),
    }
}

fn compare(compare: &Compare) -> proto::Compare {
    let (key, target, value) = match compare {
        Compare::Revision(key, revision) => {
            (key, CompareTarget::Mod, TargetUnion::ModRevision(*revision))
        }
        Compare::Lease(key, lease) => (key, CompareTarget::Lease, TargetUnion::Lease(*lease)),
        Compare::Absent(key) => (key, CompareTarget::Create, TargetUnion::CreateRevision(0)),
    };
    proto::Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: key.as_bytes().to_vec(),
        target_union: Some(value),
    }
}

fn operation(write: &Write) -> proto::RequestOp {
    let request = match write {
        Write::Put { key, value, lease } => Operation::Put(proto::PutRequest {
            key: key.as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
            lease: *lease,
        }),
        Write::Delete(key) => Operation::DeleteRange(proto::DeleteRangeRequest {
            key: key.as_bytes().to_vec(),
            range_end: Vec::new(),
        }),
    };
    proto::RequestOp { request: Some(request) }
}

pub(super) fn key_value(found: &proto::KeyValue) -> KeyValue {
    KeyValue {
        key: text(&found.key),
        value: text(&found.value),
        revision: found.mod_revision,
        lease: found.lease,
    }
}

/// Returns the change of an event; `None` if it has no key.
pub(super) fn change(event: proto::Event) -> Option<Change> {
    let is_deletion = event.r#type() == EventType::Delete;
    let key = event.kv?;
    if is_deletion {
        return Some(Change::Deleted { key: text(&key.key), revision: key.mod_revision });
    }
    Some(Change::Put(key_value(&key)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_next_key_without_it() {
        assert_eq!(end_of("/nuthatch/a/"), b"/nuthatch/a0");
        assert_eq!(end_of(""), [0]);
    }
}
