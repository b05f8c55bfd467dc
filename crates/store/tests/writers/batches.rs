use crate::Case;
use crate::waiting::{block_on, until};
use nuthatch_store::{
    Ack, Batch, BatchOptions, Condition, Durability, Error, Failure, Kind, Options, Range, Read,
    Store, wait_closed,
};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

#[test]
fn every_batch_of_many_tasks_is_acknowledged_and_there() {
    const TASKS: u32 = 16;
    const EACH: u32 = 50;
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let writer = case.store.batch_writer(&BatchOptions::new()).expect("a writer");
    std::thread::scope(|scope| {
        for task in 0..TASKS {
            let (writer, table, store) = (writer.clone(), &table, &case.store);
            scope.spawn(move || {
                for n in 0..EACH {
                    let key = format!("{task}:{n}").into_bytes();
                    let batch = Batch::new().put(table, key.clone(), b"value");
                    writer.submit(batch).expect("room").wait().expect("an acknowledgement");
                    let there = store.get(table, &key).expect("a get").is_some();
                    assert!(there, "{task}:{n} was acknowledged");
                }
            });
        }
    });
    let txn = case.store.read().expect("a transaction");
    assert_eq!(txn.count(&table, &Range::all()).expect("a count"), u64::from(TASKS * EACH));
    assert!(txn.id() < u64::from(TASKS * EACH), "{} transactions: nothing was grouped", txn.id());
}

#[test]
fn tasks_wait_for_acknowledgements_without_a_thread_each() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let writer = case.store.batch_writer(&BatchOptions::new()).expect("a writer");
    let acks: Vec<_> = (0..100_u8)
        .map(|n| block_on(writer.submit_async(Batch::new().put(&table, vec![n, 1], b"v"))))
        .collect();
    let mut last = 0;
    for ack in acks {
        let written = block_on(ack.expect("room")).expect("an acknowledgement");
        assert!(written.transaction >= last, "in order");
        last = written.transaction;
    }
}

/// Submits batches while the test has a write transaction open, so that they form one group.
fn grouped(case: &Case, failure: Failure, batches: Vec<Batch>) -> Vec<Result<u64, &'static str>> {
    let most = 100_000;
    let options = BatchOptions::new().failure(failure).queue_bytes(most);
    let writer = case.store.batch_writer(&options).expect("a writer");
    let table = case.store.table("first").expect("a table");
    let blocked = case.store.write().expect("a transaction");
    // The batch fills the queue. The others have room once it was taken, as its own group.
    let first = writer.submit(Batch::new().put(&table, b"k", vec![0; most])).expect("room");
    let acks: Vec<_> =
        batches.into_iter().map(|batch| writer.submit(batch).expect("room")).collect();
    drop(blocked);
    first.wait().expect("an acknowledgement");
    let answers = acks.into_iter().map(Ack::wait);
    answers.map(|answer| answer.map(|w| w.deleted).map_err(|e| e.code())).collect()
}

#[test]
fn a_failed_batch_fails_alone() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let answers = grouped(
        &case,
        Failure::Alone,
        vec![
            Batch::new().put(&table, b"a", b"1").put(&table, b"b", b"2"),
            Batch::new().put(&table, b"c", b"3").put(&table, b"", b"no such key"),
            Batch::new().put(&table, b"d", b"4").check(&table, b"a", Condition::Absent),
            Batch::new().check(&table, b"a", Condition::Equals(b"1")).put(&table, b"e", b"5"),
            Batch::new().delete(&table, b"b").delete(&table, b"none"),
            Batch::new().delete_range(&table, Range::all().from("x")),
        ],
    );
    let expected = [Ok(0), Err("length"), Err("condition-unmet"), Ok(0), Ok(1), Ok(0)];
    assert_eq!(answers, expected);
    let txn = case.store.read().expect("a transaction");
    let rows = txn.scan(&table, &Range::all().into()).expect("a scan");
    let keys: Vec<_> = rows.map(|row| row.expect("a row").0[0] as char).collect();
    assert_eq!(keys, ['a', 'e'], "nothing of the batches that failed");
}

#[test]
fn a_group_fails_together_where_that_was_chosen() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let answers = grouped(
        &case,
        Failure::Group,
        vec![
            Batch::new().put(&table, b"a", b"1"),
            Batch::new().put(&table, b"", b"no such key"),
            Batch::new().put(&table, b"b", b"2"),
        ],
    );
    assert_eq!(answers, [Err("group"), Err("length"), Err("group")]);
    assert_eq!(case.store.get(&table, b"a").expect("a get"), None);
}

#[test]
fn a_full_queue_gives_batches_back_and_makes_others_wait() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let options = BatchOptions::new().queue_bytes(1000).group_batches(1);
    let writer = case.store.batch_writer(&options).expect("a writer");
    let batch = |n: u8| Batch::new().put(&table, vec![n + 1], vec![0; 400]);
    let blocked = case.store.write().expect("a transaction");
    let mut acks = Vec::new();
    // The queue has room for two batches, and the thread of the writer takes one out of it.
    let refused = loop {
        match writer.try_submit(batch(acks.len() as u8)) {
            Ok(ack) => acks.push(ack),
            Err((batch, error)) => {
                assert!(matches!(error, Error::QueueFull));
                if acks.len() == 3 {
                    break batch;
                }
                std::thread::yield_now();
            }
        }
        assert!(acks.len() < 4, "no bound");
    };
    let mut waits = pin!(writer.submit_async(refused));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| writer.submit(batch(100)).expect("room").wait());
        drop(blocked);
        thread.join().expect("no panic").expect("an acknowledgement");
    });
    let ack = block_on(waits).expect("room");
    block_on(ack).expect("an acknowledgement");
    for ack in acks {
        ack.wait().expect("an acknowledgement");
    }
}

#[test]
fn what_waits_is_written_when_the_writer_goes() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let writer = case.store.batch_writer(&BatchOptions::new()).expect("a writer");
    let blocked = case.store.write().expect("a transaction");
    let ack = writer.submit(Batch::new().put(&table, b"k", b"v")).expect("room");
    drop(writer);
    drop(blocked);
    ack.wait().expect("an acknowledgement");
    assert!(case.store.get(&table, b"k").expect("a get").is_some());
}

#[test]
fn a_group_that_has_no_room_is_written_in_parts() {
    let case = Case::with(&Options::new().limit(1 << 20));
    let table = case.store.table("t").expect("a table");
    let writer = case.store.batch_writer(&BatchOptions::new()).expect("a writer");
    let blocked = case.store.write().expect("a transaction");
    let acks: Vec<_> = (0..8_u8)
        .map(|n| Batch::new().put(&table, vec![n + 1], vec![n; 150_000]))
        .map(|batch| writer.submit(batch).expect("room in the queue"))
        .collect();
    drop(blocked);
    let answers: Vec<_> = acks.into_iter().map(|ack| ack.wait().is_ok()).collect();
    let written = answers.iter().filter(|ok| **ok).count();
    assert!((4..8).contains(&written), "{answers:?}");
    let txn = case.store.read().expect("a transaction");
    assert_eq!(txn.count(&table, &Range::all()).expect("a count"), written as u64);
}

#[test]
fn versions_are_those_of_acknowledgements() {
    let case = Case::new();
    let table = case.store.table_of("t", Kind::Stamped).expect("a table");
    let options = BatchOptions::new().durability(Durability::None);
    let writer = case.store.batch_writer(&options).expect("a writer");
    let ack = writer.submit(Batch::new().put(&table, b"k", b"1")).expect("room");
    let first = ack.wait().expect("an acknowledgement").sequence;
    let batch = |value: &[u8]| {
        let condition = Condition::Version(first);
        Batch::new().check(&table, b"k", condition).put(&table, b"k", value)
    };
    writer.submit(batch(b"2")).expect("room").wait().expect("the version holds");
    let error = writer.submit(batch(b"3")).expect("room").wait().expect_err("it was overwritten");
    assert!(matches!(error, Error::ConditionUnmet { write: 0 }));
    writer.flush().expect("a flush");
    until("the value", || case.store.get(&table, b"k").expect("a get") == Some(b"2".to_vec()));
}

#[test]
fn a_closed_store_answers_what_waits() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let writer = case.store.batch_writer(&BatchOptions::new()).expect("a writer");
    case.store.close();
    let ack = writer.submit(Batch::new().put(&table, b"k", b"v")).expect("room");
    assert!(ack.wait().is_err());
}

#[test]
fn a_store_that_was_closed_can_be_opened_again_when_its_threads_are_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    for round in 0..20_u8 {
        let store = Store::open(&path, &Options::new()).expect("a store");
        let table = store.table("rows").expect("a table");
        let writer = store.batch_writer(&BatchOptions::new()).expect("a writer");
        let ack = writer.submit(Batch::new().put(&table, [round], b"value")).expect("room");
        ack.wait().expect("an answer");
        assert!(!wait_closed(&path, Duration::ZERO), "it is open");
        drop((writer, table, store));
        assert!(wait_closed(&path, Duration::from_mins(1)), "its thread is gone");
    }
}
