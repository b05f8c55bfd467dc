//! Clients that receive nothing: the server holds little memory for them, and ends their
//! transactions.

use super::served::{Served, TABLE, key, options, served_to};
use nuthatch_rpc::{ClientOptions, Options, Scan};
use std::time::Duration;

const ROWS: u32 = 12_000;
const BATCH: usize = 64 << 10;
const HOURS: Duration = Duration::from_hours(9);

/// Starts a server with 12 MB of rows, and a client with a window of 64 KiB.
fn many_rows(options: &Options) -> Served {
    let client = ClientOptions::new().window_bytes(64 << 10);
    let served = served_to(&options.clone().batch_bytes(BATCH), &client);
    served.fill(ROWS, 1000);
    served
}

#[test]
fn a_scan_that_is_not_received_holds_little_and_its_transaction_ends() {
    let served = many_rows(&options().idle(Duration::from_millis(20)));
    let mut stream = served.client.scan(TABLE, &Scan::all());
    let first = served.wait(stream.next()).expect("a batch").expect("rows");
    served.until(|served| served.open_transactions() == 0);
    // Bytes in the network, waiting messages, and messages that are being created.
    let held = served.server.metrics().held_bytes();
    assert!(held > 0 && held <= 4 * (BATCH as u64 + 3000), "{held}");
    let mut came = first.len();
    let error = loop {
        match served.wait(stream.next()).expect("an error before the end") {
            Ok(batch) => came += batch.len(),
            Err(error) => break error,
        }
    };
    assert_eq!((error.code(), error.status()), ("expired", 10));
    let reason = "the transaction was ended: its client neither read nor sent for 20ms, the limit \
                  that --idle-ms of the server sets;";
    assert!(error.message().starts_with(reason), "{error}");
    assert!(came < ROWS as usize, "{came}");
    // It continues after the last received row.
    let mut rest = served.client.scan(TABLE, &stream.rest());
    let next = served.wait(rest.next()).expect("a batch").expect("rows");
    assert_eq!(next.get(0).expect("a row").0, key(came as u32));
}

#[test]
fn a_scan_across_transactions_continues_in_a_later_one() {
    let served = many_rows(&options().idle(Duration::from_millis(20)));
    let mut stream = served.client.scan(TABLE, &Scan::all().across_transactions());
    let first = served.wait(stream.next()).expect("a batch").expect("rows");
    served.until(|served| served.open_transactions() == 0);
    served.store.delete(&served.table, &key(ROWS - 1)).expect("deleted");
    let (mut came, mut last) = (first.len(), first.transaction());
    while let Some(batch) = served.wait(stream.next()) {
        let batch = batch.expect("rows");
        assert_eq!(batch.get(0).expect("a row").0, key(came as u32));
        came += batch.len();
        assert!(batch.transaction() >= last);
        last = batch.transaction();
    }
    assert_eq!(came, ROWS as usize - 1);
    assert!(last > first.transaction());
}

#[test]
fn a_scan_beyond_the_maximum_duration_loses_its_transaction() {
    let served = many_rows(&options().idle(HOURS).max_transaction(Duration::from_millis(20)));
    let mut stream = served.client.scan(TABLE, &Scan::all());
    served.wait(stream.next()).expect("a batch").expect("rows");
    served.until(|served| served.open_transactions() == 0);
    let error = loop {
        if let Err(error) = served.wait(stream.next()).expect("an error before the end") {
            break error;
        }
    };
    assert_eq!(error.code(), "expired");
    let reason = "it was open for 20ms, the limit that --longest-ms of the server sets;";
    assert!(error.message().contains(reason), "{error}");
}

#[test]
fn a_scan_that_is_dropped_ends_at_once() {
    let served = many_rows(&options().idle(HOURS).max_transaction(HOURS));
    let mut stream = served.client.scan(TABLE, &Scan::all());
    served.wait(stream.next()).expect("a batch").expect("rows");
    served.until(|served| served.open_transactions() == 1);
    drop(stream);
    served.until(|served| served.open_transactions() == 0);
    served.until(|served| {
        served.server.metrics().open_calls() == 0 && served.server.metrics().held_bytes() == 0
    });
}

#[test]
fn a_lost_client_holds_no_calls_and_no_memory() {
    let Served { server, client, store, .. } =
        many_rows(&options().idle(HOURS).max_transaction(HOURS));
    // Dropping the runtime drops the connection.
    drop(client);
    while store.stat().expect("a store").open_transactions > 0 || server.metrics().open_calls() > 0
    {
        std::thread::yield_now();
    }
    assert_eq!(server.metrics().held_bytes(), 0);
}

#[test]
fn a_backup_that_is_not_received_ends() {
    let served = many_rows(&options().idle(Duration::from_millis(20)));
    let mut backup = served.wait(served.client.backup(false)).expect("a stream");
    served.wait(backup.next()).expect("bytes").expect("bytes");
    served.until(|served| served.open_transactions() == 0);
    let error = loop {
        if let Err(error) = served.wait(backup.next()).expect("an error before the end") {
            break error;
        }
    };
    assert_eq!(error.code(), "expired");
}

#[test]
fn an_idle_transaction_ends() {
    let served = many_rows(&options().idle(Duration::from_millis(20)));
    let mut txn = served.wait(served.client.txn()).expect("a transaction");
    served.wait(txn.get(TABLE, &key(1))).expect("read");
    served.until(|served| served.open_transactions() == 0);
    let error = served.wait(txn.get(TABLE, &key(1))).expect_err("it has ended");
    assert_eq!(error.code(), "expired");
}
