//! Tests a system clock that is set back, set forward, and set to its limits.

use crate::{MEMCACHE, PMC, RESP, Subject, ask};

const HOUR_MS: u64 = 3_600_000;
const NOW_MS: u64 = 1_700_000_000_000;

#[test]
fn a_clock_that_goes_back_only_delays_expiry() {
    let subject = Subject::new();
    let mut resp = subject.connect(RESP);
    let mut memcache = subject.connect(MEMCACHE);
    ask(&mut resp, b"SET k v PX 1500\r\n", b"+OK\r\n");
    ask(&mut resp, b"SET stays v\r\n", b"+OK\r\n");
    ask(&mut memcache, b"set m 0 10 1\r\nm\r\n", b"STORED\r\n");
    subject.clock.set(NOW_MS - HOUR_MS);
    ask(&mut resp, b"PTTL k\r\n", b":3601500\r\n");
    ask(&mut resp, b"PEXPIRETIME k\r\n", b":1700000001500\r\n");
    ask(&mut memcache, b"mg m t\r\n", b"HD t3610\r\n");
    // The times of values that are stored now begin now.
    ask(&mut resp, b"SET new v PX 1500\r\n", b"+OK\r\n");
    subject.clock.set(NOW_MS - HOUR_MS + 1500);
    ask(&mut resp, b"MGET new k m stays\r\n", b"*4\r\n$-1\r\n$1\r\nv\r\n$1\r\nm\r\n$1\r\nv\r\n");
    subject.clock.set(NOW_MS + 1499);
    ask(&mut resp, b"PTTL k\r\n", b":1\r\n");
    subject.clock.set(NOW_MS + 1500);
    ask(&mut resp, b"MGET new k m stays\r\n", b"*4\r\n$-1\r\n$-1\r\n$1\r\nm\r\n$1\r\nv\r\n");
    subject.clock.set(NOW_MS + 10_000);
    ask(&mut memcache, b"get m stays\r\n", b"VALUE stays 0 1\r\nv\r\nEND\r\n");
}

/// Regression test: the removal wrote items that expire at the time of their write.
#[test]
fn removed_items_stay_removed_when_the_clock_goes_back() {
    let subject = Subject::new();
    let mut resp = subject.connect(RESP);
    let mut memcache = subject.connect(MEMCACHE);
    let keys = ["getdel", "expire", "expireat", "del", "delete", "md", "set", "touch", "gat", "ms"];
    for key in keys {
        ask(&mut resp, format!("SET {key} v\r\n").as_bytes(), b"+OK\r\n");
    }
    ask(&mut resp, b"GETDEL getdel\r\n", b"$1\r\nv\r\n");
    ask(&mut resp, b"PEXPIRE expire -1\r\n", b":1\r\n");
    ask(&mut resp, b"EXPIREAT expireat 1699999999\r\n", b":1\r\n");
    ask(&mut resp, b"DEL del\r\n", b":1\r\n");
    ask(&mut memcache, b"delete delete\r\n", b"DELETED\r\n");
    ask(&mut memcache, b"ms md 1 E77\r\nv\r\nmd md C77\r\n", b"HD\r\nHD\r\n");
    ask(&mut memcache, b"set set 0 -1 1\r\nw\r\n", b"STORED\r\n");
    ask(&mut memcache, b"touch touch -1\r\n", b"TOUCHED\r\n");
    ask(&mut memcache, b"gat -1 gat\r\n", b"VALUE gat 0 1\r\nv\r\nEND\r\n");
    ask(&mut memcache, b"ms ms 1 T-1\r\nw\r\n", b"HD\r\n");
    for ms in [NOW_MS, NOW_MS - 1, NOW_MS - HOUR_MS, 1] {
        subject.clock.set(ms);
        for key in keys {
            ask(&mut resp, format!("EXISTS {key}\r\n").as_bytes(), b":0\r\n");
        }
    }
}

/// The memory of the item may have been reused, or not.
#[test]
fn expired_items_come_back_complete_or_not_at_all() {
    let subject = Subject::new();
    let mut resp = subject.connect(RESP);
    ask(&mut resp, b"SET k v PX 1500\r\n", b"+OK\r\n");
    subject.clock.set(NOW_MS + HOUR_MS);
    ask(&mut resp, b"GET k\r\n", b"$-1\r\n");
    ask(&mut resp, b"SET k w NX PX 1500\r\n", b"+OK\r\n");
    subject.clock.set(NOW_MS);
    ask(&mut resp, b"GET k\r\n", b"$1\r\nw\r\n");
    ask(&mut resp, b"PTTL k\r\n", b":3601500\r\n");
}

/// All memory is in segments of expired items. Then the clock is set back, and they are valid
/// again.
#[test]
fn writes_succeed_when_the_clock_goes_back_without_free_memory() {
    let subject = Subject::new();
    let mut resp = subject.connect(RESP);
    let value = vec![b'v'; 10_000];
    for number in 0..20_000_u32 {
        if number % 4000 == 0 {
            let hours = [5, 1, 9, 3, 2][number as usize / 4000];
            subject.clock.set(NOW_MS + hours * HOUR_MS);
        }
        let key = number.to_string();
        let px: &[u8] = if number % 3 == 0 { b"1000" } else { b"900000000" };
        let set = crate::framed(&[b"SET", key.as_bytes(), &value, b"PX", px]);
        ask(&mut resp, &set, b"+OK\r\n");
        let (get, answer) = crate::get(RESP, &key, &value);
        ask(&mut resp, &get, &answer);
    }
    subject.is_well();
}

#[test]
fn a_clock_at_its_limits_is_harmless() {
    let subject = Subject::new();
    let mut resp = subject.connect(RESP);
    let mut memcache = subject.connect(MEMCACHE);
    let mut pmc = subject.connect(PMC);
    let past_i64 = i64::MAX.unsigned_abs() + 1;
    for ms in [0, 1, 999, NOW_MS, (1 << 48) - 1, 1 << 48, past_i64 - 1, past_i64, u64::MAX - 1] {
        subject.clock.set(ms);
        ask(&mut pmc, b"SET k v\x1fGET k\x1f", b"OK\x1fv\x1f");
        ask(&mut memcache, b"set m 5 0 1\r\nm\r\ngets none\r\n", b"STORED\r\nEND\r\n");
        ask(&mut resp, b"PERSIST k\r\nTTL k\r\nECHO x\r\n", b":0\r\n:-1\r\n$1\r\nx\r\n");
        let asks = "set m 0 9 1\r\nm\r\ngat 9 m\r\nmg m t v\r\ntouch m 2592000\r\nmg m R9 t v\r\n\
                    ma n N9 t v\r\nms m 1 T9\r\nx\r\nflush_all 9\r\n";
        let other = subject.connect(MEMCACHE);
        finish(other, format!("{asks}quit\r\n").as_bytes());
        let asks = "SET k v EX 10\r\nSET k v PX 9223372036854775807\r\nEXPIRE k 9\r\n\
                    PTTL k\r\nGETEX k EX 9\r\nEXPIRETIME k\r\nTIME\r\nINFO\r\nCLIENT LIST\r\n\
                    OBJECT IDLETIME k\r\nSLOWLOG GET\r\nLATENCY HISTOGRAM\r\nMULTI\r\n\
                    GET k\r\nEXEC\r\n";
        finish(subject.connect(RESP), format!("{asks}QUIT\r\n").as_bytes());
        subject.is_well();
    }
}

/// Sends bytes, and reads all replies to the end, whatever they are.
fn finish(mut stream: std::net::TcpStream, request: &[u8]) {
    use std::io::{Read, Write};
    stream.write_all(request).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answers, then the end");
    assert!(!answer.is_empty());
}
