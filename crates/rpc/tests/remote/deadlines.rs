//! Deadlines of calls.

use super::served::{Served, TABLE, code, is, key, options, served_to};
use nuthatch_rpc::{ClientOptions, Scan};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);
const HOURS: Duration = Duration::from_hours(9);

fn served(client: &ClientOptions) -> Served {
    let served =
        served_to(&options().idle(HOURS).max_transaction(HOURS).batch_bytes(16 << 10), client);
    served.fill(6000, 1000);
    served
}

#[test]
fn a_write_that_waits_ends_at_its_deadline() {
    let served = served(&ClientOptions::new().timeout(SHORT));
    // This transaction holds the write lock, so no other write can begin.
    let writing = served.store.write().expect("the write lock");
    assert_eq!(code(served.wait(served.client.put(TABLE, b"a", b"1"))), is("deadline", 4));
    served.until(|served| served.server.metrics().open_calls() == 0);
    assert!(served.server.metrics().exposition().contains("calls_failed_total{method=\"Put\"} 1"));
    drop(writing);
}

#[test]
fn a_scan_ends_at_its_deadline_whether_rows_are_received_or_not() {
    let served = served(&ClientOptions::new().window_bytes(64 << 10));
    let mut stream = served.client.scan(TABLE, &Scan::all().timeout(SHORT));
    let first = served.wait(stream.next()).expect("an answer");
    served.until(|served| served.open_transactions() == 0);
    let error = match first {
        Err(error) => error,
        Ok(_) => loop {
            if let Err(error) = served.wait(stream.next()).expect("an error before the end") {
                break error;
            }
        },
    };
    assert_eq!((error.code(), error.status()), ("deadline", 4));
    let mut whole = served.client.scan(TABLE, &Scan::all().timeout(HOURS).limit(1));
    let batch = served.wait(whole.next()).expect("a batch").expect("rows");
    assert_eq!(batch.get(0).expect("a row").0, key(0));
}
