//! Tests HTTP requests, which a web page can make a browser send to any port.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, ask, get, miss, printable, set};
use std::io::{Read, Write};

const ALL: [usize; 4] = [RESP, MEMCACHE, PMC, MRCACHE];

/// The first lines of requests that have commands in their bodies.
const HEADS: [&str; 5] = [
    "POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nContent-Length: 99\r\n\r\n",
    "POST /%1f HTTP/1.1\r\nContent-Type: text/plain\r\nhost: localhost\r\n\r\n",
    "post / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
    "PUT /k HTTP/1.1\r\nHOST:localhost\r\n\r\n",
];

/// Sends bytes, and returns all that the server sends until it closes the connection.
fn answers(subject: &Subject, listener: usize, request: &[u8]) -> Vec<u8> {
    let mut stream = subject.connect(listener);
    // The server may close before it has read all of it.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[track_caller]
fn is_absent(subject: &Subject, listener: usize, key: &str) {
    ask(&mut subject.connect(listener), &get(listener, key, b"").0, miss(listener));
}

#[test]
fn commands_in_the_body_of_an_http_request_are_not_executed() {
    let subject = Subject::new();
    for listener in ALL {
        let (body, stored) = set(listener, "k", b"v");
        for head in HEADS {
            // A separator of poor-man's-cache ends the head, too.
            for between in [&b""[..], b"\x1f", b"\r\n"] {
                let request = [head.as_bytes(), between, &body, between, &body].concat();
                let answer = answers(&subject, listener, &request);
                let executed = answer.windows(stored.len().max(1)).any(|part| part == stored);
                assert!(!executed, "{} to {}", printable(&answer), printable(&request));
                is_absent(&subject, listener, "k");
            }
        }
    }
    subject.is_well();
}

#[test]
fn an_http_request_ends_the_connection_before_its_body_comes() {
    let subject = Subject::new();
    for listener in ALL {
        for head in HEADS {
            if listener == PMC && !head[..4].eq_ignore_ascii_case("POST") {
                // A message of this protocol has no lines, so this one is incomplete.
                continue;
            }
            let mut stream = subject.connect(listener);
            stream.write_all(head.as_bytes()).expect("sent");
            let mut answer = Vec::new();
            // The connection is closed, or reset if a part of the head was not read.
            let _ = stream.read_to_end(&mut answer);
        }
    }
    subject.wait_until_alone();
}

#[test]
fn http_requests_are_counted() {
    let subject = Subject::new();
    for listener in ALL {
        answers(&subject, listener, HEADS[0].as_bytes());
    }
    let mut stream = subject.connect(RESP);
    stream.write_all(b"INFO stats\r\nQUIT\r\n").expect("sent");
    let mut info = String::new();
    stream.read_to_string(&mut info).expect("an answer, then the end");
    assert!(info.contains("\r\nhttp_requests_refused:4\r\n"), "{info}");
}

#[test]
fn a_framed_command_named_post_is_refused_as_well() {
    let subject = Subject::new();
    for request in ["*1\r\n$4\r\nPOST\r\n", "*2\r\n$5\r\nHost:\r\n$1\r\na\r\n"] {
        let (body, _) = set(RESP, "k", b"v");
        for listener in [RESP, PMC] {
            let request = [request.as_bytes(), &body].concat();
            assert_eq!(answers(&subject, listener, &request), b"");
        }
        is_absent(&subject, RESP, "k");
    }
}

#[test]
fn values_may_look_like_http() {
    let subject = Subject::new();
    for listener in ALL {
        let mut stream = subject.connect(listener);
        for value in HEADS {
            let (request, stored) = set(listener, "page", value.as_bytes());
            ask(&mut stream, &request, stored);
            let (request, answer) = get(listener, "page", value.as_bytes());
            ask(&mut stream, &request, &answer);
        }
    }
}
