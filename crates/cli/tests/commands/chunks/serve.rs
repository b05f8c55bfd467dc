//! `nuthatch chunks serve`, with curl as the client.

use super::origin::{Server, noise};
use crate::folder::{Folder, Run};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

const LEN: usize = 2_500_000;

/// A cache in front of an origin. It is killed when this is dropped.
pub(super) struct Served {
    pub(super) folder: Folder,
    pub(super) child: Child,
    /// The lines that it printed at its start.
    pub(super) said: Vec<String>,
}

fn served(origin: &str, arguments: &[&str]) -> Served {
    served_in(Folder::new(), origin, arguments)
}

pub(super) fn served_in(folder: Folder, origin: &str, arguments: &[&str]) -> Served {
    let command = folder.command(&serve_with(arguments));
    served_by(folder, command, origin, arguments)
}

/// Returns all arguments of a server.
pub(super) fn serve_with<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let serve = ["chunks", "serve", "--cache", "cache", "--limit", "64MiB", "--retries", "0"];
    let listen = ["--listen", "127.0.0.1:0", "--threads", "1", "--log", "trace"];
    [&serve[..], &listen, arguments].concat()
}

pub(super) fn served_by(
    folder: Folder,
    mut command: Command,
    origin: &str,
    arguments: &[&str],
) -> Served {
    folder.file("tokens", "token someone read >s3cret\n");
    let mut child = command
        .env("NUTHATCH_ORIGIN", origin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command to start");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let lines = if arguments.contains(&"--admin") { lines.take(3) } else { lines.take(2) };
    let said = lines.map(|line| line.expect("a line")).collect();
    Served { folder, child, said }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn url(&self, path: &str) -> String {
        let address = self.said[0].strip_prefix("listening at ").expect("an address");
        format!("{address}{path}")
    }

    /// Sends a request with curl. Returns the body, or the head and the body.
    pub(super) fn curl(&self, path: &str, arguments: &[&str]) -> Run {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--path-as-is", "--noproxy", "*"]);
        command.args(arguments).arg(self.url(path)).current_dir(self.folder.path("."));
        Run::of(command, b"")
    }

    #[track_caller]
    fn status(&self, path: &str, arguments: &[&str], expected: &str) {
        let status_only = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        let run = self.curl(path, &[&status_only, arguments].concat());
        assert_eq!((run.status, &run.stdout[..]), (Some(0), expected), "{path} {arguments:?}");
    }

    pub(super) fn signal(&self) {
        self.send(Signal::TERM);
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    /// Reads its log up to a line with a text.
    pub(super) fn log_until(&self, log: &mut impl BufRead, text: &str) -> String {
        let mut all = String::new();
        while !all.contains(text) {
            let len = log.read_line(&mut all).expect("UTF-8");
            assert_ne!(len, 0, "{text} is not in {all}, at {}", self.url("/"));
        }
        all
    }

    /// Waits until it has stopped. Returns the log.
    pub(super) fn stopped(mut self) -> String {
        let mut logged = String::new();
        let mut stderr = self.child.stderr.take().expect("its output");
        stderr.read_to_string(&mut logged).expect("UTF-8");
        let status = self.child.wait().expect("its end");
        assert_eq!(status.code(), Some(0), "{logged}");
        logged
    }
}

#[test]
fn curl_gets_bytes_from_the_cache() {
    let body = noise(LEN, 1);
    let origin = Server::new(body.clone());
    let served = served(&origin.url("/data"), &[]);
    assert_eq!(served.said[1], format!("{}: up to 64.0 MiB in cache", origin.url("/data/")));
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    assert_eq!(origin.requests()[0].target, "/data/a");
    origin.clear_requests();
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    assert!(served.curl("/a", &["--range", "100-199"]).stdout_bytes == body[100..200]);
    assert!(served.curl("/a", &["--range", "-5"]).stdout_bytes == body[LEN - 5..]);
    let head = served.curl("/a", &["--head"]).stdout;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for line in ["content-length: 2500000", "etag: \"one\"", "cache-status: nuthatch; hit"] {
        assert!(head.contains(&format!("{line}\r\n")), "{head}");
    }
    // A download that was cut off is resumed where it ended.
    served.folder.file("half", &body[..1_000_000]);
    let resumed = served.curl("/a", &["--continue-at", "-", "--output", "half"]);
    assert_eq!(resumed.status, Some(0), "{}", resumed.stderr);
    assert!(served.folder.bytes("half") == body);
    served.status("/a", &["--header", "If-None-Match: \"one\""], "304");
    served.status("/a", &["--header", "If-Match: \"two\""], "412");
    served.status("/a", &["--range", "2500000-"], "416");
    served.status("/a", &["--request", "DELETE"], "405");
    served.status("/../secret", &[], "400");
    assert!(origin.ranges().is_empty(), "nothing was fetched a second time");
    served.signal();
    let logged = served.stopped();
    let at = ["started", "stopping", "stopped"].map(|word| logged.find(word).expect(word));
    assert!(at.is_sorted(), "{logged}");
}

#[test]
fn tokens_are_required_and_not_logged() {
    let origin = Server::new(noise(LEN, 2));
    let address = origin.url("/").replace("http://", "http://me:s3cret@");
    let header = ["--header", "X-Shown: s3cret"];
    let served = served(&address, &[&header[..], &["--tokens", "tokens"]].concat());
    assert!(!served.said.concat().contains("s3cret"), "{:?}", served.said);
    served.status("/a", &[], "401");
    served.status("/a", &["--header", "Authorization: Bearer other"], "401");
    let token = ["--header", "Authorization: Bearer s3cret"];
    served.status("/a?X-Amz-Signature=s3cret", &token, "200");
    assert!(
        origin.requests().iter().all(|request| request.headers["authorization"] != "Bearer s3cret")
    );
    assert!(origin.requests().iter().all(|request| request.headers["x-shown"] == "s3cret"));
    origin.configure(|behaviour| behaviour.statuses = vec![500; 9].into());
    served.status("/b?key=s3cret", &token, "502");
    served.signal();
    let logged = served.stopped();
    assert!(logged.contains("a request failed"), "{logged}");
    assert!(!logged.contains("s3cret"), "{logged}");
}

#[test]
fn other_machines_get_tls_and_show_tokens_or_certificates() {
    let body = noise(LEN, 5);
    let origin = Server::new(body.clone());
    let made = |name: &str| {
        let names = vec!["localhost".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).expect(name);
        (cert.pem(), signing_key.serialize_pem())
    };
    let folder = || {
        let folder = Folder::new();
        for name in ["server", "client"] {
            let (cert, key) = made(name);
            folder.file(&format!("{name}.pem"), cert).file(&format!("{name}.key"), key);
        }
        folder
    };
    let tls = ["--tls-cert", "server.pem", "--tls-key", "server.key"];
    let open = ["--listen", "0.0.0.0:0"];
    let request = |served: &Served, arguments: &[&str]| {
        let port = served.said[1].rsplit(':').next().expect("a port");
        let url = format!("https://localhost:{port}/a");
        let mut command = Command::new("curl");
        command.args(["--silent", "--noproxy", "*", "--cacert", "server.pem", &url]);
        command.args(arguments).current_dir(served.folder.path("."));
        Run::of(command, b"")
    };
    let options = [&tls[..], &open, &["--tokens", "tokens", "--admin", "127.0.0.1:0"]].concat();
    let by_token = served_in(folder(), &origin.url("/"), &options);
    assert!(by_token.said[1].starts_with("listening at https://0.0.0.0:"), "{:?}", by_token.said);
    assert!(request(&by_token, &["--oauth2-bearer", "s3cret"]).stdout_bytes == body);
    assert!(request(&by_token, &[]).stdout.contains("expected the header Authorization"));
    let options = [&tls[..], &open, &["--tls-client-ca", "client.pem", "--admin", "127.0.0.1:0"]];
    let by_certificate = served_in(folder(), &origin.url("/"), &options.concat());
    let shown = ["--cert", "client.pem", "--key", "client.key"];
    assert!(request(&by_certificate, &shown).stdout_bytes == body);
    assert_ne!(request(&by_certificate, &[]).status, Some(0));
}

#[test]
fn the_admin_endpoint_exports_metrics() {
    let origin = Server::new(noise(LEN, 3));
    let mut served = served(&origin.url("/"), &["--admin", "127.0.0.1:0"]);
    served.status("/a", &[], "200");
    served.status("/a", &["--range", "0-9"], "206");
    let admin = served.said[1].strip_prefix("metrics at ").expect("an address").to_owned();
    served.said[0] = format!("listening at {}", admin.trim_end_matches("/metrics"));
    let metrics = served.curl("/metrics", &[]).stdout;
    for line in [
        "nuthatch_chunks_responses_total{status=\"200\"} 1",
        "nuthatch_chunks_responses_total{status=\"206\"} 1",
        "nuthatch_chunks_sent_bytes_total 2500010",
        "nuthatch_chunks_from_origin_bytes_total 2500000",
        "nuthatch_chunks_from_cache_bytes_total 10",
        "nuthatch_chunks_cache_limit_bytes 67108864",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    assert_eq!(served.curl("/healthz", &[]).stdout, "ok\n");
}

#[test]
fn responses_in_progress_finish_before_the_server_stops() {
    let body = noise(LEN, 4);
    let origin = Server::new(body.clone());
    let served = served(&origin.url("/"), &[]);
    origin.configure(|behaviour| behaviour.holds_bodies = true);
    let mut curl = Command::new("curl")
        .args(["--silent", "--noproxy", "*", &served.url("/a")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl");
    origin.wait_for_requests(0, 1);
    served.signal();
    // New connections are refused while the last request is in progress.
    while served.curl("/b", &["--max-time", "1"]).status == Some(0) {}
    origin.configure(|behaviour| behaviour.holds_bodies = false);
    let mut answered = Vec::new();
    curl.stdout.take().expect("its output").read_to_end(&mut answered).expect("bytes");
    assert!(curl.wait().expect("its end").success() && answered == body);
    served.stopped();
}

#[test]
fn addresses_that_other_machines_can_reach_are_refused() {
    let folder = Folder::new();
    folder.file("tokens", "token a read >b\n");
    let serve = |arguments: &[&str]| {
        let serve = ["chunks", "serve", "--cache", "cache"];
        let run = folder.run(&[&serve, arguments].concat());
        assert_eq!((run.status, &run.stdout[..]), (Some(2), ""), "{arguments:?}");
        assert!(!folder.path("cache").exists());
        run.stderr
    };
    let open = ["--origin", "http://127.0.0.1:1/", "--listen", "0.0.0.0:0"];
    let message = "this address is reachable by other machines, and connections to it are not \
                encrypted; expected TLS, found none; --insecure allows it";
    assert_eq!(serve(&open), format!("nuthatch: --listen 0.0.0.0:0: {message}\n"));
    assert!(serve(&[&open[..], &["--tokens", "tokens"]].concat()).contains(message));
    let message = serve(&["--origin", "http://127.0.0.1:1/", "--admin", "0.0.0.0:0"]);
    assert!(
        message.contains("and the admin endpoint has no login; --admin-insecure allows it"),
        "{message}"
    );
    let message = serve(&[]);
    assert_eq!(message, "nuthatch: expected --origin or NUTHATCH_ORIGIN, found neither\n");
    let message = serve(&["--origin", "http://host/?a=b"]);
    assert!(message.contains("--origin: expected an address without ? and #"), "{message}");
    for wrong in ["http://me:s3cret@:x/", "https:/me:s3cret@host/", "x://me:s3cret@host/"] {
        let message = serve(&["--origin", wrong]);
        assert!(message.starts_with("nuthatch: --origin: an address: expected http"), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
        let mut command = folder.command(&["chunks", "serve", "--cache", "cache"]);
        command.env("NUTHATCH_ORIGIN", wrong);
        let run = Run::of(command, b"");
        assert_eq!(run.status, Some(2));
        assert!(
            run.stderr.starts_with("nuthatch: NUTHATCH_ORIGIN: an address: "),
            "{}",
            run.stderr
        );
        assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
    }
}

#[test]
fn a_folder_that_is_removed_is_made_again_with_one_warning() {
    let body = noise(LEN, 7);
    let origin = Server::new(body.clone());
    let served = served(&origin.url("/"), &[]);
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    let cache = served.folder.path("cache");
    std::fs::remove_dir_all(&cache).expect("a folder");
    // The server checks whether its folder exists at most once a second.
    while !cache.exists() {
        assert!(served.curl("/a", &[]).stdout_bytes == body);
    }
    // It is filled again, and what was fetched is found there.
    while served.curl("/a", &[]).stdout_bytes == body && !origin.ranges().is_empty() {
        origin.clear_requests();
    }
    let stat = served.folder.run(&["chunks", "stat", "--json", "--cache", "cache"]).stdout;
    assert!(stat.contains("\"limit_bytes\":67108864"), "the limit stays: {stat}");
    served.signal();
    let logged = served.stopped();
    let warnings = logged.lines().filter(|line| line.contains("WARN")).collect::<Vec<_>>();
    assert_eq!(warnings.len(), 1, "{logged}");
    assert!(warnings[0].contains("was removed; it is created again"), "{logged}");
}

#[test]
fn a_server_without_a_folder_passes_through_with_one_warning_until_there_is_one() {
    let body = noise(LEN, 8);
    let origin = Server::new(body.clone());
    let folder = Folder::new();
    folder.file("cache", "a file is in the way");
    let served = served_in(folder, &origin.url("/"), &[]);
    assert_eq!(served.said[1], format!("{}: without a folder", origin.url("/")));
    for _ in 0..3 {
        assert!(served.curl("/a", &[]).stdout_bytes == body);
    }
    assert_eq!(origin.ranges().len(), 3, "nothing is kept");
    std::fs::remove_file(served.folder.path("cache")).expect("a file");
    while !served.folder.path("cache").is_dir() {
        assert!(served.curl("/a", &[]).stdout_bytes == body);
    }
    served.signal();
    let logged = served.stopped();
    let is_warning = |line: &&str| line.to_lowercase().contains("warn");
    let warnings = logged.lines().filter(is_warning).collect::<Vec<_>>();
    assert_eq!(warnings.len(), 1, "{logged}");
    assert!(warnings[0].contains("reads pass through to the origin"), "{logged}");
}

#[test]
fn a_hangup_reloads_certificate_and_tokens_and_keeps_valid_connections() {
    let body = noise(LEN, 9);
    let origin = Server::new(body.clone());
    let folder = Folder::new();
    let certificate = |folder: &Folder| {
        let names = vec!["localhost".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).expect("one");
        folder.file("server.pem", cert.pem()).file("server.key", signing_key.serialize_pem());
    };
    certificate(&folder);
    let tls = ["--tls-cert", "server.pem", "--tls-key", "server.key", "--tokens", "tokens"];
    let mut served = served_in(folder, &origin.url("/"), &tls);
    let mut log = BufReader::new(served.child.stderr.take().expect("its output"));
    let url = served.url("/a").replace("127.0.0.1", "localhost");
    let request = |token: &str| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--noproxy", "*", "--cacert", "server.pem", "--oauth2-bearer"]);
        command.args([token, &url]).current_dir(served.folder.path("."));
        Run::of(command, b"")
    };
    assert!(request("s3cret").stdout_bytes == body);
    served.folder.file("tokens", "token someone read >newer\n");
    certificate(&served.folder);
    assert_ne!(request("s3cret").status, Some(0), "the server has the certificate from before");
    served.send(Signal::HUP);
    served.log_until(&mut log, "credentials reloaded");
    assert!(request("newer").stdout_bytes == body);
    assert!(request("s3cret").stdout.contains("expected the header Authorization"));
    // A reload with an invalid file changes nothing.
    served.folder.file("tokens", "nonsense\n");
    served.send(Signal::HUP);
    let logged = served.log_until(&mut log, "reload failed");
    assert!(logged.contains("the previous credentials stay in use"), "{logged}");
    assert!(request("newer").stdout_bytes == body);
}

#[test]
fn the_health_check_reports_that_the_server_is_draining() {
    let origin = Server::new(noise(LEN, 10));
    let mut served = served(&origin.url("/"), &["--admin", "127.0.0.1:0", "--drain-ms", "60000"]);
    origin.configure(|behaviour| behaviour.holds_bodies = true);
    let mut busy = Command::new("curl")
        .args(["--silent", "--noproxy", "*", &served.url("/a")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl");
    origin.wait_for_requests(0, 1);
    let admin = served.said[1].strip_prefix("metrics at ").expect("an address").to_owned();
    served.said[0] = format!("listening at {}", admin.trim_end_matches("/metrics"));
    served.status("/healthz", &[], "200");
    served.signal();
    while served.curl("/healthz", &[]).stdout != "stopping\n" {}
    served.status("/healthz", &[], "503");
    origin.configure(|behaviour| behaviour.holds_bodies = false);
    let mut answered = Vec::new();
    busy.stdout.take().expect("its output").read_to_end(&mut answered).expect("an answer");
    busy.wait().expect("its end");
    assert!(answered == noise(LEN, 10), "what was under way is finished");
    served.stopped();
}
