//! Connections and the server: limits, idle clients, draining, credentials.

use crate::client::Client;
use crate::origin::noise;
use crate::{BLOCK, Front, options, quick};
use std::net::TcpStream;
use std::time::Duration;

const LEN: usize = 10 * BLOCK as usize + 17;

#[test]
fn responses_of_one_connection_are_in_the_order_of_requests() {
    let body = noise(LEN, 1);
    let front = Front::new(body.clone());
    let mut client = front.client();
    let request = |range: &str, more: &str| {
        format!("GET /a HTTP/1.1\r\nHost: a\r\nRange: bytes={range}\r\n{more}\r\n")
    };
    let all = [request("0-0", ""), request("5-", ""), request("1-2", "Connection: close\r\n")];
    client.write(all.concat()).expect("a connection");
    client.read(false).expect("an answer").is(206, &body[..1]);
    client.read(false).expect("an answer").is(206, &body[5..]);
    client.read(false).expect("an answer").is(206, &body[1..3]);
    assert!(client.rest().is_empty());
    let mut old = front.client();
    old.write("GET /a HTTP/1.0\r\n\r\n").expect("a connection");
    assert!(old.rest().ends_with(&body));
}

#[test]
fn heads_that_are_too_long_or_not_http_are_refused() {
    let front = Front::new(noise(LEN, 2));
    let refused = |bytes: String| {
        let mut client = front.client();
        // The server may have closed the connection before all bytes are written.
        let _ = client.write(bytes);
        let response = String::from_utf8_lossy(&client.rest()).into_owned();
        response.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let head = |more: String| format!("GET /a HTTP/1.1\r\nHost: a\r\n{more}\r\n");
    assert_eq!(refused(head("X: y\r\n".repeat(200))), "431");
    assert!(["431", ""].contains(&&refused(head(format!("X: {}\r\n", "y".repeat(1 << 20))))[..]));
    assert_eq!(refused("nonsense\r\n\r\n".to_owned()), "400");
    assert!(front.origin.requests().is_empty());
}

#[test]
fn a_connection_without_a_request_is_closed_after_the_idle_time() {
    let impatient = options().idle(Duration::from_millis(20));
    let front = Front::with(noise(LEN, 3), quick(), &impatient);
    assert!(front.client().rest().is_empty());
    let mut client = front.client();
    client.write("GET /a HTTP/1.1\r\nHos").expect("a connection");
    client.rest();
    front.wait_until("nuthatch_chunks_connections", 0);
}

#[test]
fn a_connection_is_closed_after_the_idle_time_behind_its_last_request() {
    // Long enough for a request, however busy the machine is.
    let front = Front::with(noise(LEN, 3), quick(), &options().idle(Duration::from_secs(2)));
    let mut client = front.client();
    client.get("/a", &["Range: bytes=0-0"]).is(206, &noise(LEN, 3)[..1]);
    assert!(client.rest().is_empty());
}

#[test]
fn a_client_that_receives_nothing_holds_little_and_is_disconnected() {
    let len = 64 << 20;
    let settings = quick().block_len(64 << 10).max_request_len(256 << 10).read_ahead(256 << 10);
    let impatient = options().idle(Duration::from_secs(2));
    let front = Front::with(noise(len, 4), settings, &impatient);
    let mut client = front.client();
    client.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    front.wait_until("nuthatch_chunks_responses_cut_off_total", 1);
    front.wait_until("nuthatch_chunks_connections", 0);
    // The bytes in the buffers of sockets, and the read-ahead.
    assert!(front.metric("nuthatch_chunks_fetched_bytes_total") < len as u64 / 2);
    assert!(client.rest().len() < len / 2);
}

#[test]
fn blocks_that_no_client_waits_for_are_not_fetched() {
    let len = 64 << 20;
    let settings = quick().block_len(64 << 10).max_request_len(256 << 10).read_ahead(256 << 10);
    let front = Front::with(noise(len, 5), settings, &options());
    front.origin.configure(|behaviour| behaviour.holds_bodies = true);
    let mut client = front.client();
    client.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    front.origin.wait_for_requests(0, 1);
    drop(client);
    // The server notices it when it sends the first bytes.
    front.origin.configure(|behaviour| behaviour.holds_bodies = false);
    front.wait_until("nuthatch_chunks_requests_open", 0);
    front.wait_until("nuthatch_chunks_connections", 0);
    assert!(front.metric("nuthatch_chunks_fetched_bytes_total") < len as u64 / 2);
    front.client().get("/a", &["Range: bytes=0-9"]).is(206, &noise(10, 5));
}

#[test]
fn a_request_of_a_disconnected_client_ends_after_the_timeout_of_the_origin() {
    let impatient = options().origin_timeout(Duration::from_millis(50));
    let front = Front::with(noise(LEN, 5), quick(), &impatient);
    front.origin.configure(|behaviour| behaviour.holds_all = true);
    let mut client = front.client();
    client.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    drop(client);
    front.wait_until("nuthatch_chunks_responses_total{status=\"504\"}", 1);
    front.wait_until("nuthatch_chunks_requests_open", 0);
    front.wait_until("nuthatch_chunks_connections", 0);
}

#[test]
fn a_client_that_closes_its_sending_side_receives_its_response() {
    let body = noise(LEN, 15);
    let front = Front::new(body.clone());
    let request = |client: &mut Client, version: &str| {
        let request = format!("GET /a HTTP/{version}\r\nHost: a\r\n\r\n");
        client.write(request).expect("a connection");
        client.close_sending();
    };
    for version in ["1.0", "1.1"] {
        let mut client = front.client();
        request(&mut client, version);
        client.read(false).expect("an answer").is(200, &body);
        assert!(client.rest().is_empty(), "the server closes the connection");
    }
    // Also for a client that waits for the origin, and for several requests at once.
    front.origin.configure(|behaviour| behaviour.holds_bodies = true);
    let mut client = front.client();
    let request = |path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.write([request("/b"), request("/c")].concat()).expect("a connection");
    client.close_sending();
    front.origin.wait_for_requests(0, 1);
    front.origin.configure(|behaviour| behaviour.holds_bodies = false);
    client.read(false).expect("an answer").is(200, &body);
    client.read(false).expect("an answer").is(200, &body);
    assert!(client.rest().is_empty());
    // A client that closes during a request, or without one, is disconnected.
    for part in ["", "GET /a HTTP/1.1\r\nHos"] {
        let mut client = front.client();
        client.write(part).expect("a connection");
        client.close_sending();
        client.rest();
    }
    front.wait_until("nuthatch_chunks_connections", 0);
}

/// Regression: idle connections kept other clients out for a minute.
#[test]
fn idle_connections_end_for_waiting_clients_at_the_maximum() {
    let body = noise(LEN, 6);
    let front = Front::with(body.clone(), quick(), &options().connections(1));
    front.origin.configure(|behaviour| behaviour.holds_bodies = true);
    let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut first = front.client();
    first.write(request).expect("a connection");
    front.wait_until("nuthatch_chunks_requests_open", 1);
    let mut second = front.client();
    second.write(request).expect("a connection");
    assert_eq!(front.metric("nuthatch_chunks_connections"), 1);
    front.origin.configure(|behaviour| behaviour.holds_bodies = false);
    first.read(false).expect("an answer in progress is finished").is(200, &body);
    second.read(false).expect("an answer").is(200, &body);
    assert!(first.rest().is_empty(), "it made room");
    let _silent: Vec<_> = (0..5).map(|_| front.client()).collect();
    front.client().get("/a", &[]).is(200, &body);
}

#[test]
fn requests_need_a_valid_token() {
    let options = options().token_check(std::sync::Arc::new(|token| token == b"s3cret"));
    let front = Front::with(noise(LEN, 7), quick(), &options);
    let mut client = front.client();
    for wrong in ["", "Bearer", "Bearer other", "Basic s3cret", "Bearer s3cret2"] {
        let response = client.get("/a", &[&format!("Authorization: {wrong}")]);
        assert_eq!(response.status, 401, "{wrong}");
        response.has("www-authenticate", "Bearer");
    }
    assert!(front.origin.requests().is_empty());
    assert_eq!(client.get("/a", &["Authorization: bearer s3cret"]).status, 200);
    let requests = front.origin.requests();
    assert!(requests.iter().all(|request| !request.headers.contains_key("authorization")));
}

#[test]
fn draining_finishes_responses_and_accepts_no_requests() {
    let body = noise(LEN, 8);
    let front = Front::new(body.clone());
    front.origin.configure(|behaviour| behaviour.holds_bodies = true);
    let (mut busy, mut idle) = (front.client(), front.client());
    idle.get("/a", &["If-None-Match: *"]);
    busy.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    front.origin.wait_for_requests(0, 1);
    front.server.stopper().stop();
    assert!(front.server.metrics().is_stopping());
    assert!(idle.rest().is_empty(), "it ends at once");
    while TcpStream::connect(front.server.addresses()[0]).is_ok() {
        std::thread::yield_now();
    }
    front.origin.configure(|behaviour| behaviour.holds_bodies = false);
    busy.read(false).expect("an answer").is(200, &body).has("connection", "close");
    let Front { server, .. } = front;
    server.wait().expect("its end");
}

#[test]
fn responses_that_exceed_the_time_to_drain_are_abandoned() {
    let brief = options().drain(Duration::from_millis(20));
    let front = Front::with(noise(LEN, 9), quick(), &brief);
    front.origin.configure(|behaviour| behaviour.holds_bodies = true);
    let mut client: Client = front.client();
    client.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    front.origin.wait_for_requests(0, 1);
    front.server.stopper().stop();
    let Front { server, origin, .. } = front;
    server.wait().expect("its end");
    assert!(client.rest().is_empty());
    origin.configure(|behaviour| behaviour.holds_bodies = false);
}

fn admitting(tokens: &'static [&'static str]) -> nuthatch_chunk_server::Options {
    options().token_check(std::sync::Arc::new(move |shown| {
        tokens.iter().any(|token| token.as_bytes() == shown)
    }))
}

#[test]
fn a_removed_token_closes_its_connections_and_no_others() {
    let body = noise(LEN, 10);
    let front = Front::with(body.clone(), quick(), &admitting(&["one", "two"]));
    let (mut one, mut two, mut silent) = (front.client(), front.client(), front.client());
    one.get("/a", &["Authorization: Bearer one"]).is(200, &body);
    two.get("/a", &["Authorization: Bearer two"]).is(200, &body);
    front.server.reloader().replace(&admitting(&["two", "new"])).expect("the same kind");
    assert!(one.rest().is_empty(), "its token was removed");
    two.get("/a", &["Authorization: Bearer two"]).is(200, &body);
    assert_eq!(front.client().get("/a", &["Authorization: Bearer one"]).status, 401);
    silent.get("/a", &["Authorization: Bearer new"]).is(200, &body);
}

#[test]
fn a_response_in_progress_ends_when_its_token_is_removed() {
    let front = Front::with(noise(LEN, 11), quick(), &admitting(&["one"]));
    front.origin.configure(|behaviour| behaviour.holds_bodies = true);
    let mut client = front.client();
    let request = "GET /a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer one\r\n\r\n";
    client.write(request).expect("a connection");
    front.origin.wait_for_requests(0, 1);
    front.server.reloader().replace(&admitting(&["two"])).expect("the same kind");
    assert!(client.rest().is_empty());
    front.origin.configure(|behaviour| behaviour.holds_bodies = false);
}

#[test]
fn credentials_are_replaced_and_never_switched_off() {
    let front = Front::with(noise(LEN, 12), quick(), &admitting(&["one"]));
    let problem = front.server.reloader().replace(&options()).expect_err("anybody could read");
    assert!(problem.to_string().contains("tokens cannot be switched on or off"), "{problem}");
    assert_eq!(front.client().get("/a", &[]).status, 401);
    let access = nuthatch_origins::Access::new().header("x-shown", "new");
    front.server.reloader().replace(&admitting(&["one"]).access(access)).expect("the same kind");
    front.client().get("/a", &["Authorization: Bearer one"]);
    let requests = front.origin.requests();
    assert!(requests.iter().all(|request| request.headers["x-shown"] == "new"), "{requests:?}");
}

#[test]
fn stale_responses_are_marked_and_counted() {
    let body = noise(LEN, 13);
    let day = Duration::from_hours(24);
    let front = Front::with(body.clone(), quick().max_stale(day), &options());
    let fresh = front.client().get("/a", &[]);
    assert!(!fresh.headers.contains_key("age"), "{:?}", fresh.headers);
    front.origin.configure(|behaviour| behaviour.statuses = vec![503; 10].into());
    let stale = front.client().get("/a", &[]);
    stale.is(200, &body).has("etag", "\"one\"");
    let age: u64 = stale.headers["age"].parse().expect("seconds");
    let expected = format!("nuthatch; hit; ttl=-{age}; detail=\"not confirmed by the origin\"");
    stale.has("cache-status", &expected);
    assert_eq!(front.metric("nuthatch_chunks_stale_total"), 1);
}

#[test]
fn an_offline_server_responds_only_from_the_cache() {
    let front = Front::with(noise(LEN, 14), quick().offline(true), &options());
    assert_eq!(front.client().get("/a", &[]).status, 504);
    assert!(front.origin.requests().is_empty());
}
