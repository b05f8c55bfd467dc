//! Requests of every kind, and their responses.

use crate::client::Response;
use crate::origin::noise;
use crate::{BLOCK, Front, Origin, options, quick};
use nuthatch_testing::page::table_with_header;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const LEN: usize = 10 * BLOCK as usize + 17;
const TIME: &str = "Mon, 02 Jan 2023 03:04:05 GMT";

#[test]
fn objects_and_their_heads() {
    let body = noise(LEN, 1);
    let front = Front::new(body.clone());
    front.origin.configure(|behaviour| behaviour.modified = Some(TIME.to_owned()));
    let mut client = front.client();
    let response = client.request("HEAD", "/a", &[]);
    response.is(200, b"").has("content-length", &LEN.to_string());
    let response = client.get("/a", &[]);
    response.is(200, &body).has("etag", "\"one\"").has("last-modified", TIME);
    response.has("accept-ranges", "bytes").has("content-type", "application/octet-stream");
    response.has("cache-status", "nuthatch; fwd=miss; detail=\"0 % in the cache\"");
    front.origin.clear_requests();
    client.get("/a", &[]).is(200, &body).has("cache-status", "nuthatch; hit");
    // `HEAD` ignores ranges.
    client.request("HEAD", "/a", &["Range: bytes=0-1"]).is(200, b"");
    assert!(front.origin.ranges().is_empty());
    front.wait_until("nuthatch_chunks_requests_open", 0);
    assert_eq!(front.metric("nuthatch_chunks_responses_total{status=\"200\"}"), 4);
    assert_eq!(front.metric("nuthatch_chunks_responses_cut_off_total"), 0);
}

#[test]
fn the_lookup_before_a_response_is_limited() {
    let blocks = 1025;
    let body = noise(blocks * BLOCK as usize, 1);
    let front = Front::new(body.clone());
    let mut client = front.client();
    client.get("/a", &[]).is(200, &body);
    let looked = 1024 * BLOCK;
    let metric = format!("nuthatch; detail=\"100 % of the first {looked} bytes in the cache\"");
    client.get("/a", &[]).is(200, &body).has("cache-status", &metric);
    client.get("/a", &["Range: bytes=4096-"]).has("cache-status", "nuthatch; hit");
}

#[test]
fn an_object_without_bytes() {
    let front = Front::new(Vec::new());
    let mut client = front.client();
    client.get("/a", &[]).is(200, b"").has("content-length", "0");
    client.get("/a", &["Range: bytes=0-"]).is(200, b"");
}

#[test]
fn one_range() {
    let body = noise(LEN, 2);
    let front = Front::new(body.clone());
    let mut client = front.client();
    let half = client.get("/a", &["Range: bytes=0-8191"]);
    half.is(206, &body[..8192]).has("content-range", &format!("bytes 0-8191/{LEN}"));
    let part = client.get("/a", &["Range: bytes=4096-16383"]);
    part.is(206, &body[4096..16384]);
    part.has("cache-status", "nuthatch; fwd=partial; detail=\"33 % in the cache\"");
    client.get("/a", &["Range: bytes=-7"]).is(206, &body[LEN - 7..]);
    client.get("/a", &["Range: bytes=40000-"]).is(206, &body[40000..]);
    let none = client.get("/a", &[&format!("Range: bytes={LEN}-")]);
    none.is(416, b"").has("content-range", &format!("bytes */{LEN}"));
    for odd in ["bytes=5-4", "lines=1-2", "bytes=a-b"] {
        client.get("/a", &[&format!("Range: {odd}")]).is(200, &body);
    }
}

/// Returns the parts of a multipart response: their ranges and bytes.
fn parts(response: &Response) -> Vec<(String, Vec<u8>)> {
    let kind = &response.headers["content-type"];
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("several");
    let mut rest = &response.body[..];
    let mut parts = Vec::new();
    let cut = |bytes: &[u8], at: &str| {
        bytes.windows(at.len()).position(|window| window == at.as_bytes()).expect("it is there")
    };
    let line = format!("\r\n--{boundary}");
    while !rest.starts_with(format!("{line}--\r\n").as_bytes()) {
        let head = cut(rest, "\r\n\r\n");
        let text = std::str::from_utf8(&rest[..head]).expect("UTF-8");
        let place = text.split("Content-Range: ").nth(1).expect("a place").to_owned();
        rest = &rest[head + 4..];
        let end = cut(rest, &line);
        parts.push((place, rest[..end].to_vec()));
        rest = &rest[end..];
    }
    parts
}

#[test]
fn several_ranges() {
    let body = noise(LEN, 3);
    let front = Front::new(body.clone());
    let mut client = front.client();
    let response = client.get("/a", &["Range: bytes=9000-9009, 0-1, 2-4, -3"]);
    assert_eq!(response.status, 206);
    let place = |first: usize, end: usize| {
        (format!("bytes {first}-{}/{LEN}", end - 1), body[first..end].to_vec())
    };
    assert_eq!(parts(&response), [place(0, 5), place(9000, 9010), place(LEN - 3, LEN)]);
    let many: Vec<_> = (0..40).map(|at| format!("{0}-{0}", at * 2)).collect();
    client.get("/a", &[&format!("Range: bytes={}", many.join(","))]).is(200, &body);
    let most = client.get("/a", &[&format!("Range: bytes={}", many[..32].join(","))]);
    assert_eq!(parts(&most).len(), 32);
}

#[test]
fn conditions() {
    let body = noise(LEN, 4);
    let front = Front::new(body.clone());
    front.origin.configure(|behaviour| behaviour.modified = Some(TIME.to_owned()));
    let mut client = front.client();
    let known = client.get("/a", &["If-None-Match: \"two\", W/\"one\""]);
    known.is(304, b"").has("etag", "\"one\"").has("last-modified", TIME);
    assert!(!known.headers.contains_key("content-length"));
    client.get("/a", &[&format!("If-Modified-Since: {TIME}")]).is(304, b"");
    client.get("/a", &["If-Match: \"two\""]).is(412, b"").has("etag", "\"one\"");
    assert!(front.origin.ranges().is_empty());
    client.get("/a", &["If-Match: \"one\"", "Range: bytes=0-1"]).is(206, &body[..2]);
    client.get("/a", &["If-Range: \"one\"", "Range: bytes=0-1"]).is(206, &body[..2]);
    client.get("/a", &["If-Range: \"two\"", "Range: bytes=0-1"]).is(200, &body);
    client.request("HEAD", "/a", &["If-None-Match: *"]).is(304, b"");
}

#[test]
fn only_objects_below_the_prefix_are_requested() {
    let front = Front::new(noise(LEN, 5));
    let mut client = front.client();
    for path in [
        "/../secret",
        "/a/../../secret",
        "/%2e%2e/secret",
        "/a%2fb",
        "/%2e%2e%2fsecret",
        "/..%5cb",
        "//other/a",
        "/a//b",
        "/%00",
        "http://other/a",
        "/./a",
    ] {
        assert_eq!(client.get(path, &[]).status, 400, "{path}");
    }
    assert!(front.origin.requests().is_empty());
    client.get("/%61%20b?v=1", &[]);
    assert_eq!(front.origin.requests()[0].target, "/data/a%20b?v=1");
    client.request("POST", "/a", &["Content-Length: 0"]).has("allow", "GET, HEAD");
    let refused = front.client().request("CONNECT", "other:443", &[]);
    assert!([400, 405].contains(&refused.status), "{refused:?}");
}

#[test]
fn errors_of_the_origin_have_statuses() {
    let front = Front::new(noise(LEN, 6));
    let mut client = front.client();
    for (status, expected) in
        [(404, 404), (403, 403), (401, 403), (500, 502), (503, 503), (429, 503), (504, 504)]
    {
        front.origin.configure(|behaviour| behaviour.statuses = vec![status; 3].into());
        let response = client.get("/a", &[]);
        assert_eq!(response.status, expected, "{status}");
        let text = String::from_utf8(response.body).expect("UTF-8");
        assert!(
            !text.contains("127.0.0.1"),
            "a response contains the address of the origin: {text}"
        );
    }
    let impatient = options().origin_timeout(Duration::from_millis(50));
    let front = Front::with(noise(LEN, 6), quick(), &impatient);
    front.origin.configure(|behaviour| behaviour.stalls_bodies = true);
    assert_eq!(front.client().get("/a", &[]).status, 504);
}

#[test]
fn a_store_without_settings_is_no_fault_of_the_client() {
    // Neither the address nor the environment names an account.
    let front = Front::before(Origin::new(Vec::new()), "az://bucket/", quick(), &options());
    assert_eq!(front.client().get("/a", &[]).status, 500);
    assert_eq!(front.client().get("/a//b", &[]).status, 400);
}

#[test]
fn an_unreachable_origin_is_a_bad_gateway() {
    let front = Front::new(noise(LEN, 7));
    front.origin.configure(|behaviour| behaviour.cuts = vec![10; 40].into());
    assert_eq!(front.client().get("/a", &[]).status, 502);
}

#[test]
fn an_object_that_changed_within_the_time_of_belief_is_opened_again() {
    let body = noise(LEN, 8);
    let front = Front::with(body.clone(), quick().max_age(Duration::from_hours(1)), &options());
    let mut client = front.client();
    client.get("/a", &["Range: bytes=0-0"]).is(206, &body[..1]);
    let newer = noise(LEN, 9);
    front.origin.configure(|behaviour| {
        behaviour.body = Arc::new(newer.clone());
        behaviour.etag = Some("\"two\"".to_owned());
    });
    let rest = client.get("/a", &["Range: bytes=4096-"]);
    rest.is(206, &newer[4096..]).has("etag", "\"two\"");
    client.get("/a", &[]).is(200, &newer);
}

#[test]
fn a_change_during_a_response_ends_it() {
    let body = noise(64 * BLOCK as usize, 10);
    let settings = quick().max_request_len(BLOCK).read_ahead(0);
    let front = Front::with(body.clone(), settings, &options());
    let newer = Arc::new(noise(64 * BLOCK as usize, 11));
    front
        .origin
        .configure(|behaviour| behaviour.changes_after = Some((5, newer, "\"two\"".to_owned())));
    let mut client = front.client();
    client.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    let got = client.rest();
    let start = got.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    assert!(body.starts_with(&got[start..]) && got.len() < body.len());
    front.wait_until("nuthatch_chunks_responses_cut_off_total", 1);
}

#[test]
fn chunks_that_the_index_displaced_are_counted() {
    let front = Front::new(Vec::new());
    let name = "nuthatch_chunks_cache_displaced_total";
    assert_eq!(front.metric(name), 0);
    let options = nuthatch_chunks::Options::new().limit(4 << 20);
    let chunks = nuthatch_chunks::Chunks::open(front.folder.path(), &options).expect("a cache");
    let key = nuthatch_chunks::Key::named("an object").expect("a key");
    let offsets: Vec<_> = (0..=1000).map(|number| number * 10).collect();
    let put = |first| {
        let stored = chunks.put(&key, first..first + 1000, &offsets, &[7; 10_000]);
        stored.expect("a put").displaced
    };
    // More chunks than fit in an index of a quarter of the limit.
    let displaced: u64 = (0..80_000).step_by(1000).map(put).sum();
    assert!(displaced > 18_000, "{displaced}");
    assert_eq!(front.metric(name), displaced);
}

#[test]
fn the_page_of_operations_lists_all_metrics() {
    let page = include_str!("../../../../docs/operations.md");
    let header = "| metric of the chunk cache | type | labels | meaning |";
    let listed: BTreeSet<_> = table_with_header(page, header, 0)
        .into_iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1].clone()))
        .collect();
    let front = Front::new(Vec::new());
    let text = front.server.metrics().exposition();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let there = kinds.map(|(name, kind)| (name.to_owned(), kind.to_owned()));
    assert_eq!(listed, there.collect::<BTreeSet<_>>());
}

#[test]
fn objects_of_unknown_length_are_served_up_to_a_size() {
    let body = noise(LEN, 12);
    let front = Front::with(body.clone(), quick().max_unsized_len(LEN as u64), &options());
    front
        .origin
        .configure(|behaviour| (behaviour.omits_length, behaviour.ignores_ranges) = (true, true));
    let mut client = front.client();
    client.get("/a", &[]).is(200, &body).has("content-length", &LEN.to_string());
    client.get("/a", &["Range: bytes=7-8"]).is(206, &body[7..9]);
    front.origin.configure(|behaviour| behaviour.body = Arc::new(noise(LEN + 1, 13)));
    assert_eq!(client.get("/a", &[]).status, 502);
}

#[test]
fn an_object_without_a_validator_is_not_stored() {
    let body = noise(LEN, 14);
    let front = Front::new(body.clone());
    front.origin.configure(|behaviour| behaviour.etag = None);
    let mut client = front.client();
    for _ in 0..2 {
        let response = client.get("/a", &["Range: bytes=10-20"]);
        response.is(206, &body[10..21]);
        response.has("cache-status", "nuthatch; fwd=miss; detail=\"0 % in the cache\"");
        assert!(!response.headers.contains_key("etag"));
    }
    assert_eq!(front.origin.ranges().len(), 2);
}
