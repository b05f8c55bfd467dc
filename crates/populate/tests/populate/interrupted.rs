//! Signals while a job waits for something that never comes.

use crate::place::{Place, Run};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};

fn start(place: &Place, job: &str) -> Child {
    place.file("job.toml", job);
    let mut command = place.command(&["job.toml"]);
    // Proxies of the environment would take the requests.
    command.env("NO_PROXY", "*").stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command")
}

/// Sends SIGTERM, and checks that the run ends and leaves only these files.
fn interrupt(place: &Place, child: Child, expected: &[&str]) {
    terminate(&child);
    let run = Run::of(child.wait_with_output().expect("the command"));
    run.failed(3, "interrupted; nothing was published");
    assert_eq!(place.names(), expected);
}

fn terminate(child: &Child) {
    let process = rustix::process::Pid::from_child(child);
    // timeout(1) sends a signal twice. Of one kind, two could be taken for one.
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        rustix::process::kill_process(process, signal).expect("a process");
    }
}

fn pipe(place: &Place) -> PathBuf {
    let path = place.path().join("pipe.csv");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).expect("a pipe");
    path
}

fn silent_server() -> (TcpListener, String) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("an address").to_string();
    (server, address)
}

#[test]
fn a_pipe_without_rows_is_not_waited_for() {
    let place = Place::new();
    let path = pipe(&place);
    let job = "output = \"a.nut\"\n[[source]]\nfrom = \"pipe.csv\"\nkey = \"{id}\"\n";
    let child = start(&place, job);
    // Opens once the job has opened the pipe.
    let mut writer = OpenOptions::new().write(true).open(&path).expect("a reader");
    writer.write_all(b"id,v\n1,a\n").expect("a reader");
    interrupt(&place, child, &["job.toml", "pipe.csv"]);
}

#[test]
fn a_dry_run_ends_without_a_row() {
    let place = Place::new();
    let path = pipe(&place);
    let mut command = place.command(&["--source=pipe.csv", "--key={id}", "--dry-run"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command");
    let _writer = OpenOptions::new().write(true).open(&path).expect("a reader");
    interrupt(&place, child, &["pipe.csv"]);
}

#[test]
fn a_locked_database_is_not_waited_for() {
    let place = Place::new();
    place.sqlite("create table t(id integer, v text)");
    let writer = rusqlite::Connection::open(place.path().join("a.db")).expect("a database");
    writer.execute_batch("begin exclusive").expect("a lock");
    let job = "output = \"a.nut\"\n[[source]]\nfrom = \"sqlite:a.db\"\n\
               query = \"select * from t\"\nkey = \"{id}\"\n";
    let child = start(&place, job);
    wait_until_open(&child, "a.db");
    interrupt(&place, child, &["a.db", "job.toml"]);
}

/// Waits until a process has a file of this name open.
fn wait_until_open(child: &Child, name: &str) {
    let descriptors = format!("/proc/{}/fd", child.id());
    let is_open = || {
        let entries = std::fs::read_dir(&descriptors).into_iter().flatten().flatten();
        let mut paths = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        paths.any(|path| path.ends_with(name))
    };
    while !is_open() {
        std::thread::yield_now();
    }
}

#[test]
fn standard_input_ends_although_its_writer_has_ended_before() {
    let place = Place::new();
    let path = pipe(&place);
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, "id,v\n1,a\n")
    });
    let stdin = std::fs::File::open(&path).expect("a writer");
    writer.join().expect("no panic").expect("written");
    let job = "output = \"a.nut\"\n[[source]]\nfrom = \"/dev/stdin\"\nformat = \"csv\"\n\
               key = \"{id}\"\n";
    place.file("job.toml", job);
    let mut command = place.command(&["job.toml"]);
    let run = Run::of(command.stdin(stdin).output().expect("the command"));
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(place.entries("a.nut"), ["1=String(\"a\")"]);
}

#[test]
fn a_pipe_without_a_password_is_not_waited_for() {
    let place = Place::new();
    let path = pipe(&place);
    let job = "output = \"a.nut\"\n[[source]]\nfrom = \"postgresql://reader@127.0.0.1:1/app\"\n\
               password_file = \"pipe.csv\"\nquery = \"select 1 as id\"\nkey = \"{id}\"\n";
    let child = start(&place, job);
    let _writer = OpenOptions::new().write(true).open(&path).expect("a reader");
    interrupt(&place, child, &["job.toml", "pipe.csv"]);
}

#[test]
fn web_servers_that_do_not_answer_are_not_waited_for() {
    for scheme in ["http", "https"] {
        let (server, address) = silent_server();
        let place = Place::new();
        let job = format!(
            "output = \"a.nut\"\n[[source]]\nfrom = \"{scheme}://{address}/a.csv\"\n\
             key = \"{{id}}\"\n"
        );
        let child = start(&place, &job);
        let _connection = server.accept().expect("a connection");
        interrupt(&place, child, &["job.toml"]);
    }
}

#[test]
fn the_rest_of_a_response_is_not_waited_for() {
    let (server, address) = silent_server();
    let place = Place::new();
    let job = format!(
        "output = \"a.nut\"\n[[source]]\nfrom = \"http://{address}/a.csv\"\nkey = \"{{id}}\"\n"
    );
    let child = start(&place, &job);
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"1\"\r\n\
                Last-Modified: Thu, 26 Nov 2026 12:00:00 GMT\r\n\r\n";
    let range = "HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\nETag: \"1\"\r\n\
                 Content-Range: bytes 0-999/1000\r\n\
                 Last-Modified: Thu, 26 Nov 2026 12:00:00 GMT\r\n\r\nid,v\n1,a\n";
    let (mut connection, _) = server.accept().expect("a connection");
    let requests = BufReader::new(connection.try_clone().expect("a socket"));
    for line in requests.lines() {
        let line = line.expect("a request");
        if line.starts_with("HEAD ") {
            connection.write_all(head.as_bytes()).expect("a client");
        }
        if line.starts_with("GET ") {
            connection.write_all(range.as_bytes()).expect("a client");
            break;
        }
    }
    interrupt(&place, child, &["job.toml"]);
}

#[test]
fn a_destination_that_does_not_answer_is_not_waited_for() {
    let (server, address) = silent_server();
    let place = Place::new();
    let child = start_publishing(&place, &address);
    let _connection = server.accept().expect("a connection");
    interrupt(&place, child, &["a.csv", "job.toml"]);
}

#[test]
fn an_upload_that_does_not_end_is_not_waited_for() {
    let (server, address) = silent_server();
    let place = Place::new();
    let child = start_publishing(&place, &address);
    let mut connection;
    loop {
        connection = server.accept().expect("a connection").0;
        if answer_reads(&connection) {
            break;
        }
    }
    terminate(&child);
    let run = Run::of(child.wait_with_output().expect("the command"));
    run.failed(3, "interrupted during the publication; a.nut was replaced. \"nuthatch generations");
    assert_eq!(place.names(), ["a.csv", "a.nut", "job.toml"]);
}

/// Starts a job that publishes to a store at this address.
fn start_publishing(place: &Place, address: &str) -> Child {
    place.file("a.csv", "id,v\n1,a\n");
    let job = "output = \"a.nut\"\npublish = \"s3://bucket/users\"\n\
               [[source]]\nfrom = \"a.csv\"\nkey = \"{id}\"\n";
    place.file("job.toml", job);
    let mut command = place.command(&["job.toml"]);
    command.env("AWS_ENDPOINT_URL", format!("http://{address}")).env("AWS_ALLOW_HTTP", "true");
    command.env("AWS_ACCESS_KEY_ID", "reader").env("AWS_SECRET_ACCESS_KEY", "secret");
    command.env("AWS_REGION", "us-east-1").env("NO_PROXY", "*");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command")
}

/// Replies like an empty bucket until a request writes. Returns `false` if the connection ends
/// before.
fn answer_reads(mut connection: &TcpStream) -> bool {
    let mut requests = BufReader::new(connection.try_clone().expect("a socket")).lines();
    while let Some(Ok(line)) = requests.next() {
        if line.starts_with("PUT ") || line.starts_with("POST ") {
            return true;
        }
        let (status, body) = if line.starts_with("GET ") && line.contains("list-type=2") {
            ("200 OK", "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")
        } else if line.starts_with("GET ") {
            ("404 Not Found", "")
        } else {
            continue;
        };
        let len = body.len();
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: {len}\r\n\r\n{body}");
        connection.write_all(response.as_bytes()).expect("a client");
    }
    false
}
