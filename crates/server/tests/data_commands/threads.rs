//! Tests commands from several threads at once: none is lost, and none is executed twice.

use crate::engine::{Connection, Engine};
use nuthatch_server::resp::Version;
use std::sync::Barrier;
use std::thread;

const THREADS: usize = 4;
const INCREMENTS: usize = 4000;
const EXCHANGES: usize = 30_000;

/// Runs `work` on every thread, and returns the results.
fn on_threads<R: Send>(engine: &Engine, work: impl Fn(Connection<'_>) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    work(engine.connect(Version::Resp2))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends well")).collect()
    })
}

#[test]
fn every_increment_counts() {
    let engine = Engine::new(1);
    on_threads(&engine, |mut connection| {
        for _ in 0..INCREMENTS {
            connection.run(&["INCR", "count"]);
            connection.run(&["APPEND", "bytes", "x"]);
            connection.run(&["INCRBYFLOAT", "fraction", "0.5"]);
            connection.run(&["BITFIELD", "fields", "INCRBY", "u32", "5", "1"]);
        }
    });
    let mut connection = engine.connect(Version::Resp2);
    let all = THREADS * INCREMENTS;
    assert_eq!(connection.run(&["INCRBY", "count", "0"]), format!(":{all}\r\n").as_bytes());
    assert_eq!(connection.run(&["STRLEN", "bytes"]), format!(":{all}\r\n").as_bytes());
    let half = (all / 2).to_string();
    let fraction = format!("${}\r\n{half}\r\n", half.len());
    assert_eq!(connection.run(&["GET", "fraction"]), fraction.as_bytes());
    let fields = connection.run(&["BITFIELD", "fields", "GET", "u32", "5"]);
    assert_eq!(fields, format!("*1\r\n:{all}\r\n").as_bytes());
}

/// Exactly one thread gets a value that one thread stores.
#[test]
fn getdel_returns_each_value_exactly_once() {
    let engine = Engine::new(1);
    let answers = on_threads(&engine, |mut connection| {
        let mut answers = Vec::new();
        for round in 0..EXCHANGES {
            let value = format!("{:?} {round}", thread::current().id());
            let request = match round % 3 {
                0 => vec!["GETSET", "k", &value],
                1 => vec!["GETDEL", "k"],
                _ => vec!["SET", "k", &value, "GET"],
            };
            let put = request.get(2).map(|value| (*value).to_owned());
            answers.push((put, connection.run(&request)));
        }
        answers
    });
    let mut connection = engine.connect(Version::Resp2);
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    let bulk = |text: &String| format!("${}\r\n{text}\r\n", text.len()).into_bytes();
    let mut put: Vec<_> = answers.iter().filter_map(|(put, _)| put.as_ref().map(bulk)).collect();
    let mut taken: Vec<_> = answers.iter().map(|(_, answer)| answer.clone()).collect();
    taken.push(connection.run(&["GETDEL", "k"]));
    taken.retain(|answer| answer != b"$-1\r\n");
    put.sort();
    taken.sort();
    assert!(put == taken, "{} were put there, {} were taken", put.len(), taken.len());
}
