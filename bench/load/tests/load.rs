//! Tests the generator with servers in the test process.

mod servers;

use nuthatch_load::{
    Address, Distribution, Echo, Error, Load, Protocol, Reply, Report, Requests, Work, Workload,
};
use servers::{Answer, CLOSE, cache, start};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PROTOCOLS: [Protocol; 5] =
    [Protocol::Resp, Protocol::Memcache, Protocol::Meta, Protocol::Mrcache, Protocol::Pmc];

fn load(address: &Address, protocol: Protocol, work: Work) -> Load {
    Load {
        address: address.clone(),
        workload: Workload {
            protocol,
            work,
            keys: 2000,
            distribution: Distribution::Zipf(0.99),
            value_bytes: 100,
            pipeline: 10,
        },
        connections: 5,
        rate: None,
        threads: 2,
        core_number: None,
        warmup: Duration::from_millis(5),
        measured: Duration::from_millis(20),
        server_pid: Some(std::process::id()),
    }
}

fn run(load: &Load) -> Result<Report, Error> {
    load.run(&Requests::of(&load.workload), &AtomicBool::new(false))
}

#[track_caller]
fn fails(load: &Load) -> String {
    run(load).expect_err("the server does not do as it should").to_string()
}

fn fill(load: &Load) -> Result<(), Error> {
    load.fill(&AtomicBool::new(false))
}

#[test]
fn filled_keys_are_hits_in_every_protocol() {
    for protocol in PROTOCOLS {
        let (address, store) = cache(protocol, 100);
        let load = load(&address, protocol, Work::Get);
        fill(&load).expect("a server that stores");
        {
            let store = store.lock().expect("no panic");
            assert_eq!(store.len(), 2000, "{protocol}");
            assert!(store.iter().all(|(key, value)| value.starts_with(key)), "{protocol}");
        }
        let report = run(&load).expect("a server that answers");
        let found = report.found.expect("lookups have outcomes");
        assert_eq!((found.hits, found.misses), (report.requests, 0), "{protocol}");
        assert!(report.requests > 0 && report.ops_per_second > 0.0, "{protocol}");
        assert!(report.server.is_some() && report.server_resident_bytes > Some(0), "{protocol}");
        let latency = report.latency;
        assert!(latency.p50_us > 0.0 && latency.p50_us <= latency.max_us, "{protocol}");
    }
}

#[test]
fn absent_keys_are_misses_in_every_protocol() {
    for protocol in PROTOCOLS {
        let (address, _) = cache(protocol, 100);
        let report = run(&load(&address, protocol, Work::Get)).expect("a server that answers");
        let found = report.found.expect("lookups have outcomes");
        assert_eq!((found.hits, found.misses), (0, report.requests), "{protocol}");
    }
}

#[test]
fn values_are_stored_in_every_protocol() {
    for protocol in PROTOCOLS {
        for work in [Work::Set, Work::Mixed(0.5)] {
            let (address, store) = cache(protocol, 100);
            let report = run(&load(&address, protocol, work)).expect("a server that answers");
            assert_eq!(report.found.is_some(), work != Work::Set, "{protocol}");
            assert!(!store.lock().expect("no panic").is_empty(), "{protocol}");
        }
    }
}

#[test]
fn large_values_and_single_requests_work() {
    let (address, _) = cache(Protocol::Resp, 100_000);
    let mut load = load(&address, Protocol::Resp, Work::Get);
    load.workload = Workload { value_bytes: 100_000, keys: 50, pipeline: 1, ..load.workload };
    fill(&load).expect("a server that stores");
    let report = run(&load).expect("a server that answers");
    assert_eq!(report.found.map(|found| found.misses), Some(0));
}

/// Returns a function that sends the same reply to every RESP request of `load`.
fn always(reply: &'static [u8]) -> Answer {
    Arc::new(move |bytes| (bytes.len() >= 36).then(|| (36, reply.to_vec())))
}

#[test]
fn an_unexpected_reply_is_shown() {
    let address = start(always(b"-LOADING try later\r\n"));
    let message = fails(&load(&address, Protocol::Resp, Work::Get));
    assert!(message.starts_with(&format!("{address}: connection ")), "{message}");
    assert!(message.contains(r#"found "-LOADING try later\r\n"#), "{message}");
    assert!(message.contains(r#"expected a reply that begins with "$100\r\n""#), "{message}");
}

#[test]
fn filling_fails_when_a_key_is_not_stored() {
    let (count, full) = (AtomicUsize::new(0), b"-OOM command not allowed\r\n");
    let answer = move |bytes: &[u8]| {
        let is_last = || count.fetch_add(1, Ordering::Relaxed) == 1999;
        let reply = || if is_last() { full.to_vec() } else { b"+OK\r\n".to_vec() };
        (bytes.len() >= 144).then(|| (144, reply()))
    };
    let address = start(Arc::new(answer));
    let error = fill(&load(&address, Protocol::Resp, Work::Get)).expect_err("one is not stored");
    assert!(error.to_string().contains(r#"found "-OOM"#), "{error}");
}

#[test]
fn surplus_replies_are_errors() {
    let address = start(always(b"$-1\r\n$-1\r\n"));
    let message = fails(&load(&address, Protocol::Resp, Work::Get));
    assert!(message.contains("more came than the 10 replies of a batch"), "{message}");
}

#[test]
fn a_closed_connection_is_reported() {
    let address = start(always(CLOSE));
    let message = fails(&load(&address, Protocol::Resp, Work::Get));
    assert!(message.contains("connection "), "{message}");
    assert!(message.contains("after 0 of a batch's 10 replies"), "{message}");
}

#[test]
fn a_missing_server_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = Address::Tcp(listener.local_addr().expect("an address").to_string());
    drop(listener);
    let message = fails(&load(&address, Protocol::Resp, Work::Get));
    assert!(message.starts_with(&format!("{address}: connection 0: ")), "{message}");
    assert!(message.contains("refused"), "{message}");
}

#[test]
fn a_run_can_be_stopped() {
    let (address, _) = cache(Protocol::Resp, 100);
    let mut load = load(&address, Protocol::Resp, Work::Get);
    load.measured = Duration::from_hours(1);
    let requests = Requests::of(&load.workload);
    let result = load.run(&requests, &AtomicBool::new(true));
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
}

#[test]
fn a_rate_limits_the_requests() {
    let (address, _) = cache(Protocol::Resp, 100);
    let load = load(&address, Protocol::Resp, Work::Get);
    let load = Load { rate: Some(2000.0), warmup: Duration::ZERO, ..load };
    let started = Instant::now();
    let report = run(&load).expect("a server that replies");
    // The first batch of each connection is not delayed, and one may be due at the end.
    let most = started.elapsed().as_secs_f64() * 2000.0 + 2.0 * 5.0 * 10.0;
    let requests = report.requests as f64;
    assert!(requests >= 10.0 && requests <= most, "{requests} of at most {most}");
}

#[test]
fn invalid_settings_are_refused() {
    let (address, _) = cache(Protocol::Mrcache, 100);
    let good = load(&address, Protocol::Mrcache, Work::Get);
    let of = |workload| Load { workload, ..good.clone() };
    let workload = || good.workload.clone();
    let wrong = [
        (of(Workload { keys: 0, ..workload() }), "at least one key is needed"),
        (of(Workload { pipeline: 0, ..workload() }), "a batch has one request at least"),
        (
            of(Workload { pipeline: 1_000_000, ..workload() }),
            "1000000 requests with 100 bytes are too many for a batch",
        ),
        (of(Workload { value_bytes: 0, ..workload() }), "values have one byte at least"),
        (
            of(Workload { value_bytes: 1 << 24, ..workload() }),
            "values of mrcache have at most 16777215 bytes",
        ),
        (Load { rate: Some(0.5), ..good.clone() }, "a rate is from 1 to 1e9 requests in a second"),
        (
            Load { rate: Some(f64::NAN), ..good.clone() },
            "a rate is from 1 to 1e9 requests in a second",
        ),
        (Load { threads: 0, ..good.clone() }, "at least one thread is needed"),
        (Load { threads: 6, ..good.clone() }, "each thread needs a connection"),
    ];
    for (load, expected) in wrong {
        let error = load.check().expect_err(expected);
        assert!(matches!(error, Error::Usage(_)), "{error:?}");
        assert_eq!(error.to_string(), expected);
    }
}

/// Runs an echo server while `run` loads it.
fn against_echo(address: &Address, request: usize, reply: Reply, run: impl FnOnce(&Address)) {
    let stop = AtomicBool::new(false);
    let echo = Echo::bind(address, request, reply).expect("a free address");
    let address = echo.address().clone();
    thread::scope(|scope| {
        let server = scope.spawn(|| echo.serve(&stop));
        run(&address);
        stop.store(true, Ordering::Relaxed);
        server.join().expect("no panic").expect("no failure");
    });
}

#[test]
fn the_echo_server_answers_gets() {
    let any = "127.0.0.1:0".parse().expect("an address");
    against_echo(&any, 36, Reply::Value(100), |address| {
        // The echo server's buffers of 16 KiB split batches of 3,600 bytes at arbitrary bytes.
        for pipeline in [1, 7, 100, 1000] {
            let mut load = load(address, Protocol::Resp, Work::Get);
            load.workload.pipeline = pipeline;
            let report = run(&load).expect("an echo");
            assert_eq!(report.found.map(|found| found.hits), Some(report.requests), "{pipeline}");
        }
    });
}

#[test]
fn the_echo_server_answers_sets_on_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = Address::Unix(folder.path().join("socket"));
    against_echo(&path, 144, Reply::Ok, |address| {
        let report = run(&load(address, Protocol::Resp, Work::Set)).expect("an echo");
        assert!(report.requests > 0);
    });
}

#[test]
fn the_echo_server_outlives_its_clients() {
    let any = "127.0.0.1:0".parse().expect("an address");
    against_echo(&any, 36, Reply::Value(99), |address| {
        // The clients expect another value size than 99 bytes, so they close the connection early.
        for _ in 0..20 {
            let message = fails(&load(address, Protocol::Resp, Work::Get));
            assert!(message.contains(r#"found "$99\r\n"#), "{message}");
        }
        let mut load = load(address, Protocol::Resp, Work::Get);
        load.workload.value_bytes = 99;
        assert!(run(&load).is_ok());
    });
}
