//! Tests many connections that send byte by byte.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, get, set};
use nuthatch_cache::Eviction;
use std::io::{Read, Write};

const EACH: usize = 25;

#[test]
fn requests_of_many_connections_arrive_byte_by_byte() {
    for threads in [1, 2] {
        let subject = Subject::with(64 << 20, Eviction::S3Fifo, threads);
        let mut lanes: Vec<_> = (0..4 * EACH)
            .map(|number| {
                let listener = [RESP, MEMCACHE, PMC, MRCACHE][number % 4];
                let key = format!("key:{number}");
                let value = format!("value {number} ").repeat(number % 5).into_bytes();
                let (set, stored) = set(listener, &key, &value);
                let (get, found) = get(listener, &key, &value);
                let request = [&*set, &*get, &*set, &*get].concat();
                let answer = [stored, &*found, stored, &*found].concat();
                (subject.connect(listener), request, answer)
            })
            .collect();
        let longest = lanes.iter().map(|lane| lane.1.len()).max().expect("some");
        for at in 0..longest {
            for (stream, request, _) in &mut lanes {
                if let Some(byte) = request.get(at) {
                    stream.write_all(&[*byte]).expect("sent");
                }
            }
        }
        for (stream, request, answer) in &mut lanes {
            let mut found = vec![0; answer.len()];
            stream.read_exact(&mut found).expect("an answer");
            assert_eq!(
                crate::printable(&found),
                crate::printable(answer),
                "{}",
                crate::printable(request)
            );
        }
        drop(lanes);
        subject.wait_until_alone();
    }
}
