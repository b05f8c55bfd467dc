//! Random operations: the store returns the same results as a `BTreeMap`.

use crate::Case;
use nuthatch_store::{Kind, Range, Read, Scan};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Whether the nested transaction with these operations is committed.
    Nested(Vec<(Vec<u8>, Vec<u8>)>, bool),
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>, bool, u64),
    Get(Vec<u8>),
    /// Ends the transaction, with a commit or without.
    End(bool),
}

/// Short keys of few different bytes, so that operations meet the same keys; some keys are long.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(255)];
    prop_oneof![
        9 => prop::collection::vec(byte, 1..4),
        1 => prop::collection::vec(any::<u8>(), 300..=511),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::collection::vec(any::<u8>(), 3000..9000),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let key = prop_oneof![key(), Just(Vec::new()), prop::collection::vec(any::<u8>(), 600)];
    prop_oneof![
        Just(Bound::Unbounded),
        key.clone().prop_map(Bound::Included),
        key.prop_map(Bound::Excluded),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => key().prop_map(Op::Delete),
        1 => (bound(), bound()).prop_map(|(start, end)| Op::DeleteRange(start, end)),
        1 => (prop::collection::vec((key(), value()), 0..5), any::<bool>())
            .prop_map(|(rows, commit)| Op::Nested(rows, commit)),
        4 => (bound(), bound(), any::<bool>(), prop_oneof![Just(u64::MAX), 0_u64..40])
            .prop_map(|(start, end, reverse, limit)| Op::Scan(start, end, reverse, limit)),
        2 => key().prop_map(Op::Get),
        1 => any::<bool>().prop_map(Op::End),
    ]
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn within(model: &Model, start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> Vec<Vec<u8>> {
    let range = Range::new(start.clone(), end.clone());
    model.keys().filter(|key| range.contains(key)).cloned().collect()
}

fn check_scan(
    txn: &impl Read,
    table: &nuthatch_store::Table,
    model: &Model,
    (start, end): (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
    reverse: bool,
    limit: u64,
) {
    let mut keys = within(model, start, end);
    if reverse {
        keys.reverse();
    }
    keys.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let mut scan = Scan::new(Range::new(start.clone(), end.clone())).limit(limit);
    if reverse {
        scan = scan.reverse();
    }
    let mut rows = txn.scan(table, &scan).expect("a scan");
    for key in &keys {
        let (found, value) = rows.next().expect("a row").expect("no error");
        assert_eq!((found, value), (&key[..], &model[key][..]));
    }
    assert!(rows.next().is_none() && rows.next().is_none(), "it ends, and stays so");
}

fn run(kind: Kind, ops: &[Op]) {
    let case = Case::new();
    let table = case.store.table_of("t", kind).expect("a table");
    let mut committed = Model::new();
    let mut model = Model::new();
    let mut txn = Some(case.store.write().expect("a transaction"));
    for op in ops {
        let open = txn.as_mut().expect("a transaction");
        match op {
            Op::Put(key, value) => {
                open.put(&table, key, value).expect("a put");
                model.insert(key.clone(), value.clone());
            }
            Op::Delete(key) => {
                let deleted = open.delete(&table, key).expect("a delete");
                assert_eq!(deleted, model.remove(key).is_some());
            }
            Op::DeleteRange(start, end) => {
                let keys = within(&model, start, end);
                let range = Range::new(start.clone(), end.clone());
                let deleted = open.delete_range(&table, &range).expect("a delete");
                assert_eq!(deleted, keys.len() as u64);
                model.retain(|key, _| !range.contains(key));
            }
            Op::Nested(rows, commit) => {
                let mut nested = open.nested().expect("a nested transaction");
                for (key, value) in rows {
                    nested.put(&table, key, value).expect("a put");
                }
                if *commit {
                    nested.commit().expect("a commit");
                    model.extend(rows.iter().cloned());
                }
            }
            Op::Scan(start, end, reverse, limit) => {
                check_scan(open, &table, &model, (start, end), *reverse, *limit);
            }
            Op::Get(key) => {
                let found = open.get(&table, key).expect("a get");
                assert_eq!(found, model.get(key).map(Vec::as_slice));
            }
            Op::End(commit) => {
                let ended = txn.take().expect("a transaction");
                if *commit {
                    ended.commit().expect("a commit");
                    committed.clone_from(&model);
                } else {
                    drop(ended);
                    model.clone_from(&committed);
                }
                let read = case.store.read().expect("a transaction");
                let all = (&Bound::Unbounded, &Bound::Unbounded);
                check_scan(&read, &table, &committed, all, false, u64::MAX);
                drop(read);
                let verified = case.store.verify(|_, _| ()).expect("no damage");
                assert_eq!(verified.lost_pages, 0, "{verified:?}");
                txn = Some(case.store.write().expect("a transaction"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn plain_tables_answer_as_a_map(ops in prop::collection::vec(op(), 1..60)) {
        run(Kind::Plain, &ops);
    }

    #[test]
    fn stamped_tables_answer_as_a_map(ops in prop::collection::vec(op(), 1..60)) {
        run(Kind::Stamped, &ops);
    }
}
