//! Compares the replies of a real Redis and of the commands here to the same requests.

use crate::engine::Engine;
use crate::generate::{Chance, Compare, compare};
use crate::redis::Redis;
use nuthatch_cache::{Clock, SystemClock};
use nuthatch_server::resp::Version;

const SEQUENCES: u64 = 60;
const REQUESTS: usize = 1000;

/// The maximum difference of two times on a slow machine, in the unit of the reply.
const SLACK: i64 = 5000;

#[test]
fn random_requests_have_the_replies_of_redis() {
    let mut redis = Redis::start();
    for seed in 0..SEQUENCES {
        let version = if seed % 2 == 0 { Version::Resp2 } else { Version::Resp3 };
        redis.begin(version);
        let engine = Engine::new(SystemClock.now_ms());
        let mut connection = engine.connect(version);
        let mut chance = Chance::new(seed);
        let requests: Vec<_> = (0..REQUESTS).map(|_| chance.request()).collect();
        let expected = redis.run(&requests);
        for (number, (request, expected)) in requests.iter().zip(expected).enumerate() {
            connection.set_time(SystemClock.now_ms());
            let found = connection.run(request);
            assert!(
                same(compare(request), &expected, &found),
                "seed {seed}, request {number}: {}\nRedis: {}\nhere:  {}",
                request.iter().map(|arg| arg.escape_ascii().to_string() + " ").collect::<String>(),
                expected.escape_ascii(),
                found.escape_ascii(),
            );
        }
    }
}

fn same(compare: Compare, expected: &[u8], found: &[u8]) -> bool {
    match compare {
        _ if expected == found => true,
        Compare::Bytes => false,
        Compare::Lines => lines(expected) == lines(found),
        Compare::Times => match (time(expected), time(found)) {
            (Some(expected), Some(found)) => {
                expected > 0 && found > 0 && expected.abs_diff(found) < SLACK.unsigned_abs()
            }
            _ => false,
        },
    }
}

fn lines(reply: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = reply.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

fn time(reply: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(reply).ok()?;
    text.strip_prefix(':')?.trim_end().parse().ok()
}
