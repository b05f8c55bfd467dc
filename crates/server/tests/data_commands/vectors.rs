//! Sends testdata/protocol/commands.txt to the commands here and to a real Redis.

use crate::case::Case;
use crate::engine::Engine;
use crate::redis::Redis;
use nuthatch_cache::{Clock, SystemClock};
use nuthatch_server::resp::Version;

const COMMANDS: &str = include_str!("../../../../testdata/protocol/commands.txt");

/// A request and its reply.
struct Exchange {
    /// The time that is set before the request, if any.
    now_ms: Option<u64>,
    request: Vec<Vec<u8>>,
    reply: Vec<u8>,
}

/// Returns the exchanges of a case in their order.
fn exchanges(case: &Case) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut now_ms = None;
    for (word, strings) in case.lines() {
        match (word, exchanges.last_mut()) {
            ("newer" | "resp3", None) => {}
            ("now", _) => {
                let text = String::from_utf8_lossy(&strings[0]).into_owned();
                now_ms = Some(text.parse().expect("milliseconds"));
            }
            ("run", _) => exchanges.push(Exchange {
                now_ms: now_ms.take(),
                request: strings.to_vec(),
                reply: Vec::new(),
            }),
            ("reply", Some(exchange)) => exchange.reply.extend(strings.concat()),
            _ => panic!("{}: {word} does not belong here", case.name),
        }
    }
    exchanges
}

fn has(case: &Case, word: &str) -> bool {
    case.lines().any(|line| line.0 == word)
}

fn version(case: &Case) -> Version {
    if has(case, "resp3") { Version::Resp3 } else { Version::Resp2 }
}

#[track_caller]
fn check(case: &Case, exchange: &Exchange, found: &[u8]) {
    assert_eq!(
        found.escape_ascii().to_string(),
        exchange.reply.escape_ascii().to_string(),
        "{}: {}",
        case.name,
        exchange.request.join(&b' ').escape_ascii(),
    );
}

#[test]
fn commands_match_the_vectors() {
    check_all(Engine::new);
}

#[test]
fn commands_match_the_vectors_with_compression() {
    check_all(Engine::compressed);
}

fn check_all(engine: impl Fn(u64) -> Engine) {
    for case in Case::all(COMMANDS) {
        let engine = engine(SystemClock.now_ms());
        let mut connection = engine.connect(version(&case));
        for exchange in exchanges(&case) {
            if let Some(now_ms) = exchange.now_ms {
                connection.set_time(now_ms);
            }
            check(&case, &exchange, &connection.run(&exchange.request));
        }
    }
}

/// A vector must be what Redis does. The time of Redis cannot be set, and it does not know newer
/// commands.
#[test]
fn redis_matches_the_vectors() {
    let mut redis = Redis::start();
    for case in Case::all(COMMANDS) {
        if has(&case, "now") || has(&case, "newer") {
            continue;
        }
        redis.begin(version(&case));
        for exchange in exchanges(&case) {
            let replies = redis.run(std::slice::from_ref(&exchange.request));
            check(&case, &exchange, &replies[0]);
        }
    }
}
