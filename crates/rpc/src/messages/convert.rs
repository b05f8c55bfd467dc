//! Converts messages to types of the store, and back.

use crate::error::{Error, Result};
use crate::messages::proto;
use bytes::Bytes;
use nuthatch_store::{Change, Condition, Kind, Operation, Range, Written};
use std::ops::Bound;

/// Returns the range of a message; all keys if it has none.
pub(crate) fn range(range: Option<proto::Range>) -> Range {
    use proto::range::{End, Start};
    let Some(proto::Range { start, end, prefix }) = range else { return Range::all() };
    let start = match start {
        Some(Start::From(key)) => Bound::Included(key.into()),
        Some(Start::After(key)) => Bound::Excluded(key.into()),
        None => Bound::Unbounded,
    };
    let end = match end {
        Some(End::To(key)) => Bound::Included(key.into()),
        Some(End::Before(key)) => Bound::Excluded(key.into()),
        None => Bound::Unbounded,
    };
    let range = Range::new(start, end);
    prefix.map_or(range.clone(), |prefix| range.and(&Range::prefix(prefix)))
}

pub(crate) fn range_message(range: &Range) -> proto::Range {
    use proto::range::{End, Start};
    let bytes = Bytes::copy_from_slice;
    let start = match range.start() {
        Bound::Included(key) => Some(Start::From(bytes(key))),
        Bound::Excluded(key) => Some(Start::After(bytes(key))),
        Bound::Unbounded => None,
    };
    let end = match range.end() {
        Bound::Included(key) => Some(End::To(bytes(key))),
        Bound::Excluded(key) => Some(End::Before(bytes(key))),
        Bound::Unbounded => None,
    };
    proto::Range { start, end, prefix: None }
}

/// Returns the condition of a message.
pub(crate) fn condition(condition: Option<&proto::Condition>) -> Result<Condition<'_>> {
    use proto::condition::Holds;
    match condition.and_then(|condition| condition.holds.as_ref()) {
        Some(Holds::Absent(true)) => Ok(Condition::Absent),
        Some(Holds::Present(true)) => Ok(Condition::Present),
        Some(Holds::Equals(value)) => Ok(Condition::Equals(value)),
        Some(Holds::Version(version)) => Ok(Condition::Version(*version)),
        Some(Holds::Absent(false) | Holds::Present(false)) => {
            Err(Error::argument("condition: expected true, found false"))
        }
        None => Err(Error::argument("condition: expected one, found none")),
    }
}

pub(crate) fn condition_message(condition: Condition<'_>) -> proto::Condition {
    use proto::condition::Holds;
    let holds = match condition {
        Condition::Absent => Holds::Absent(true),
        Condition::Present => Holds::Present(true),
        Condition::Equals(value) => Holds::Equals(Bytes::copy_from_slice(value)),
        Condition::Version(version) => Holds::Version(version),
    };
    proto::Condition { holds: Some(holds) }
}

/// Returns the kind of a message; `None` if any kind is accepted.
pub(crate) fn kind(kind: i32) -> Result<Option<Kind>> {
    match proto::Kind::try_from(kind) {
        Ok(proto::Kind::Unspecified) => Ok(None),
        Ok(proto::Kind::Plain) => Ok(Some(Kind::Plain)),
        Ok(proto::Kind::Stamped) => Ok(Some(Kind::Stamped)),
        Err(_) => Err(Error::argument(format!("kind: expected 0, 1 or 2, found {kind}"))),
    }
}

pub(crate) fn kind_number(kind: Option<Kind>) -> i32 {
    let kind = match kind {
        None => proto::Kind::Unspecified,
        Some(Kind::Plain) => proto::Kind::Plain,
        Some(Kind::Stamped) => proto::Kind::Stamped,
    };
    kind as i32
}

pub(crate) fn written_message(written: Written) -> proto::Written {
    let Written { transaction, sequence, deleted } = written;
    proto::Written { transaction, sequence, deleted }
}

pub(crate) fn written(written: proto::Written) -> Written {
    let proto::Written { transaction, sequence, deleted } = written;
    Written { transaction, sequence, deleted }
}

/// Returns a field of a response that must be set.
pub(crate) fn required<T>(answer: Option<T>) -> Result<T> {
    answer.ok_or_else(|| Error::internal("expected an answer of this version, found an empty one"))
}

pub(crate) fn change_message(change: Change) -> proto::Change {
    let Change { sequence, transaction, operation, table, key, value, expires_at_ms } = change;
    let (operation, value) = match operation {
        Operation::Put => (proto::Operation::Put, Some(value.into())),
        Operation::Delete => (proto::Operation::Delete, None),
        Operation::Expire => (proto::Operation::Expire, None),
    };
    let (operation, key) = (operation as i32, key.into());
    proto::Change { sequence, transaction, operation, table, key, value, expires_at_ms }
}

pub(crate) fn change(change: proto::Change) -> Result<Change> {
    let proto::Change { sequence, transaction, operation, table, key, value, expires_at_ms } =
        change;
    let operation = match proto::Operation::try_from(operation) {
        Ok(proto::Operation::Put) => Operation::Put,
        Ok(proto::Operation::Delete) => Operation::Delete,
        Ok(proto::Operation::Expire) => Operation::Expire,
        Ok(proto::Operation::Unspecified) | Err(_) => return required(None),
    };
    let (key, value) = (key.into(), value.unwrap_or_default().into());
    Ok(Change { sequence, transaction, operation, table, key, value, expires_at_ms })
}

pub(crate) fn problem_message(error: &Error) -> proto::Problem {
    let (status, write) = (error.status(), error.write());
    let (code, message) = (error.code().to_owned(), error.message().to_owned());
    proto::Problem { status, code, message, write }
}

pub(crate) fn problem(problem: proto::Problem) -> Error {
    let proto::Problem { status, code, message, write } = problem;
    Error::reported(status, code, message, write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_back_as_they_went() {
        let ranges = [
            Range::all(),
            Range::all().from("a").to("b"),
            Range::all().after("a").before("b"),
            Range::prefix("user:"),
            Range::all().from("").before(""),
        ];
        for each in ranges {
            assert_eq!(range(Some(range_message(&each))), each);
        }
        assert_eq!(range(None), Range::all());
        let message = proto::Range { prefix: Some("b".into()), ..range_message(&Range::all()) };
        assert_eq!(range(Some(message)), Range::prefix("b"));
        let narrow = range_message(&Range::all().after("ba").to("z"));
        let narrow = range(Some(proto::Range { prefix: Some("b".into()), ..narrow }));
        assert_eq!(narrow, Range::all().after("ba").before("c"));
    }

    #[test]
    fn conditions_come_back_as_they_went() {
        let all = [
            Condition::Absent,
            Condition::Present,
            Condition::Equals(b""),
            Condition::Equals(b"v"),
            Condition::Version(7),
        ];
        for each in all {
            let message = condition_message(each);
            assert_eq!(condition(Some(&message)).expect("a condition"), each);
        }
        let wrong = proto::Condition { holds: Some(proto::condition::Holds::Absent(false)) };
        for wrong in [None, Some(&proto::Condition { holds: None }), Some(&wrong)] {
            assert_eq!(condition(wrong).expect_err("no condition").code(), "argument");
        }
    }
}
