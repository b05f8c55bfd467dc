//! Batches in flight.

use super::served::{TABLE, key, options, served, served_with};
use nuthatch_rpc::{Batch, BatchWriterOptions};
use nuthatch_store::{Condition, Range, Read};

#[test]
fn each_batch_is_acknowledged_when_it_is_committed() {
    let served = served_with(&options().batches_in_flight(4));
    let (client, store, table) =
        (served.client.clone(), served.store.clone(), served.table.clone());
    served.run(async move {
        // Many more than the maximum in flight.
        let options = BatchWriterOptions::new().batches(10).bytes(400);
        let writer = client.batch_writer(&options).await.expect("a writer");
        let mut acks = Vec::new();
        for row in 0..500 {
            let batch = Batch::new().put(TABLE, key(row), "v").put(TABLE, b"last", key(row));
            acks.push(writer.submit(batch).await.expect("submitted"));
        }
        let mut last = (0, 0);
        for (row, ack) in (0..).zip(acks) {
            let written = ack.await.expect("written");
            assert!((written.transaction, written.sequence) > last || written.sequence == 0);
            last = (written.transaction, written.sequence);
            let txn = store.read().expect("a transaction");
            assert!(txn.contains(&table, &key(row)).expect("read"));
        }
        assert_eq!(client.count(TABLE, &Range::all()).await.expect("read"), 501);
    });
}

#[test]
fn a_batch_that_fails_fails_alone() {
    let served = served();
    let client = served.client.clone();
    served.run(async move {
        let writer = client.batch_writer(&BatchWriterOptions::new()).await.expect("a writer");
        let wrong = [
            (Batch::new().put(TABLE, b"x", b"1").put(TABLE, b"", b"1"), "length"),
            (Batch::new().put("none", b"x", b"1"), "no-table"),
            (Batch::new().check(TABLE, b"x", Condition::Present), "condition-unmet"),
        ];
        for (nth, (wrong, code)) in wrong.into_iter().enumerate() {
            let before = writer.submit(Batch::new().put(TABLE, [b'a', nth as u8], b"1")).await;
            let failing = writer.submit(wrong).await.expect("submitted");
            let after = writer.submit(Batch::new().put(TABLE, [b'b', nth as u8], b"1")).await;
            before.expect("submitted").await.expect("written");
            assert_eq!(failing.await.expect_err(code).code(), code);
            after.expect("submitted").await.expect("written");
        }
        assert_eq!(client.get(TABLE, b"x").await.expect("read"), None);
        assert_eq!(client.count(TABLE, &Range::all()).await.expect("read"), 6);
        let deleted = Batch::new().delete(TABLE, b"none").delete_range(TABLE, &Range::prefix("a"));
        let written = writer.submit(deleted).await.expect("submitted").await.expect("written");
        assert_eq!(written.deleted, 3);
        // Dropping an acknowledgement has no effect on the batch.
        drop(writer.submit(Batch::new().put(TABLE, b"x", b"1")).await.expect("submitted"));
        writer.flush().await.expect("written");
        assert!(client.get(TABLE, b"x").await.expect("read").is_some());
    });
}
