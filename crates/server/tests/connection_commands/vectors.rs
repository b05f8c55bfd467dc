//! Compares conversations in testdata/protocol with this server and with Redis.

use crate::case::Case;
use crate::harness::Harness;
use crate::redis::Redis;
use nuthatch_server::state::Debugging;

const CONVERSATIONS: &str = include_str!("../../../../testdata/protocol/connection.txt");
/// The conversations with a server that allows `DEBUG`.
const DEBUG: &str = include_str!("../../../../testdata/protocol/debug.txt");

/// Sends each case over one connection, and compares the replies.
fn converse(text: &str, mut answer: impl FnMut(&str, &[Vec<u8>]) -> Vec<u8>) {
    for case in Case::all(text) {
        let mut request: &[Vec<u8>] = &[];
        for (word, strings) in case.lines() {
            if word == "request" {
                request = strings;
                continue;
            }
            assert_eq!(word, "reply", "{}: a word", case.name);
            let found = answer(&case.name, request).escape_ascii().to_string();
            let expected = strings.concat().escape_ascii().to_string();
            let request = request.join(&b' ').escape_ascii().to_string();
            assert_eq!(found, expected, "{}: {request}", case.name);
        }
    }
}

/// Compares the replies of this server.
fn converse_with_us(text: &str, debug: Debugging) {
    let mut place = (String::new(), Harness::new(), None);
    converse(text, |case, request| {
        if place.0 != case {
            place = (case.to_owned(), Harness::new(), None);
        }
        let (_, harness, client) = &mut place;
        harness.server.debug = debug;
        let client = client.get_or_insert_with(|| harness.client());
        let request: Vec<_> = request.iter().map(Vec::as_slice).collect();
        harness.bytes(client, &request)
    });
}

/// Compares the replies of Redis.
fn converse_with_redis(text: &str, arguments: &[&str]) {
    let mut place = (String::new(), None);
    converse(text, |case, request| {
        if place.0 != case {
            place = (case.to_owned(), None);
        }
        let redis = place.1.get_or_insert_with(|| Redis::start_with(arguments));
        redis.run(&[request.to_vec()]).concat()
    });
}

#[test]
fn conversations_match_the_vectors() {
    converse_with_us(CONVERSATIONS, Debugging::No);
    converse_with_us(DEBUG, Debugging::Local);
}

#[test]
fn redis_matches_the_vectors() {
    converse_with_redis(CONVERSATIONS, &[]);
    converse_with_redis(DEBUG, &["--enable-debug-command", "local"]);
}
