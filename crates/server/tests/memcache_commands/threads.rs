//! Tests several threads at once.

use crate::engine::Engine;
use std::thread;

const THREADS: usize = 8;
const ROUNDS: usize = 200;

/// Returns the reply that each of the threads receives to the same request.
fn ask_at_once(engine: &Engine, request: &[u8]) -> Vec<String> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| engine.run(request))).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    })
}

#[test]
fn one_client_wins_the_renewal_of_an_item() {
    let engine = Engine::new();
    let requests: [(&[u8], &[u8]); 3] = [
        (b"delete a\r\n", b"mg a v N30\r\n"),
        (b"set a 0 0 1\r\nx\r\nmd a I\r\n", b"mg a v\r\n"),
        (b"set a 0 100 1\r\nx\r\n", b"mg a v R200\r\n"),
    ];
    for round in 0..ROUNDS {
        let (before, request) = requests[round % requests.len()];
        engine.run(before);
        let answers = ask_at_once(&engine, request);
        let count = |mark| answers.iter().filter(|answer| answer.contains(mark)).count();
        assert_eq!((count(" W\r"), count(" Z")), (1, THREADS - 1), "{answers:?}");
    }
}

#[test]
fn one_client_stores_with_a_cas_number() {
    let engine = Engine::new();
    for _ in 0..ROUNDS {
        let number = engine.run(b"ms a 1 c\r\nx\r\n");
        let number = number.trim_start_matches("HD c").trim_end();
        let answers = ask_at_once(&engine, format!("cas a 0 0 1 {number}\r\ny\r\n").as_bytes());
        let stored = answers.iter().filter(|answer| *answer == "STORED\r\n").count();
        assert_eq!(stored, 1, "{answers:?}");
    }
}

#[test]
fn concurrent_increments_are_not_lost() {
    let engine = Engine::new();
    engine.run(b"set n 0 0 1\r\n0\r\n");
    ask_at_once(&engine, &b"incr n 1\r\nma n\r\n".repeat(ROUNDS));
    let expected = 2 * ROUNDS * THREADS;
    assert_eq!(engine.run(b"ma n D0 v\r\n"), format!("VA 4\r\n{expected}\r\n"));
}
