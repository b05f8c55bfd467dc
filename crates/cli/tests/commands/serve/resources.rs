//! Limits of the machine: open files, memory and ports.

use crate::folder::{Folder, Run};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const TOO_MANY: &str = "-ERR max number of clients reached\r\n";

/// Regression test: with a limit of 64 files, the 56th client and later ones got no response.
#[test]
fn a_low_limit_of_open_files_lowers_max_clients_and_excess_clients_are_refused() {
    let folder = Folder::new();
    let arguments = ["--memcache=127.0.0.1:0", "--admin=127.0.0.1:0"];
    let server = folder.serve_with_files("-n 64", &arguments);
    let max: usize = server.config("maxclients").parse().expect("a number");
    assert!((10..60).contains(&max), "{max}");
    let messages = server.messages();
    let expected = format!("nuthatch: warning: max-clients is {max} instead of 10000: ");
    assert!(messages.starts_with(&expected), "{messages}");
    let answer = |address: &str| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let mut answer = [0; 64];
        let len = stream.read(&mut answer).expect("an answer");
        String::from_utf8(answer[..len].to_vec()).expect("a text")
    };
    let mut clients = Vec::new();
    while clients.len() < max {
        let mut stream = server.connect();
        stream.write_all(b"PING\r\n").expect("sent");
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).expect("an answer");
        if &answer == b"+PONG\r\n" {
            clients.push(stream);
        } else {
            // The connection that read the setting is not closed yet.
            drop(stream);
        }
    }
    for _ in 0..100 {
        assert_eq!(answer(&server.addresses[0]), TOO_MANY);
        assert_eq!(answer(&server.addresses[1]), "ERROR Too many open connections\r\n");
    }
    let refused = format!("CONFIG SET maxclients {}\r\n", max + 1);
    clients[0].write_all(refused.as_bytes()).expect("sent");
    let mut answer = [0; 256];
    let len = clients[0].read(&mut answer).expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..len]);
    assert!(answer.ends_with(&format!("expected at most {max}\r\n")), "{answer}");
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_may_be() {
    let folder = Folder::new();
    let server = folder.serve_with_files("-S -n 64", &["--max-clients=200"]);
    assert_eq!((server.config("maxclients").as_str(), server.messages().as_str()), ("200", ""));
    // More open connections than the soft limit allows. Regression test: they got no response.
    let clients = (0..150).map(|_| {
        let mut stream = server.connect();
        stream.write_all(b"PING\r\n").expect("sent");
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"+PONG\r\n");
        stream
    });
    assert_eq!(clients.collect::<Vec<_>>().len(), 150);
}

#[test]
fn the_default_of_the_memory_is_three_quarters_of_a_low_limit_of_the_control_group() {
    let folder = Folder::new();
    let ports = ["serve", "--threads=2", "--memcache=off", "--resp=127.0.0.1:0", "--admin=off"];
    let server = folder.start(folder.limited(&ports, 64 << 20));
    assert_eq!(server.config("maxmemory"), (48 << 20).to_string());
    let group = folder.text("group/memory.max");
    let warning = format!(
        "nuthatch: warning: memory is 48.0 MiB instead of 1.0 GiB: only 64.0 MiB are available \
         (the limit of its control group, {group})\n"
    );
    assert_eq!(server.messages(), warning);
    // The budget of a store beside the cache comes first.
    let store = ["--store=db", "--store-create", "--grpc=127.0.0.1:0", "--store-memory=16MiB"];
    let server = folder.start(folder.limited(&[&ports[..], &store].concat(), 64 << 20));
    assert_eq!(server.config("maxmemory"), (36 << 20).to_string());
    // A budget that was given is refused, not lowered.
    let given = [&ports[..], &["--memory=65MiB"]].concat();
    let run = Run::of(folder.limited(&given, 64 << 20), b"");
    let expected = "nuthatch: --memory: expected at most 64.0 MiB";
    assert!(run.status == Some(2) && run.stderr.starts_with(expected), "{run:?}");
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let folder = Folder::new();
    let run = folder.run_serve(&["--memory=1TiB", "--resp=127.0.0.1:0"], &[]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.stderr.starts_with("nuthatch: --memory: expected at most "), "{run:?}");
    let variable = [("NUTHATCH_STORE_MEMORY", "999999GiB")];
    std::fs::create_dir(folder.path("db")).expect("a folder");
    let store = ["--memory=16MiB", "--resp=127.0.0.1:0", "--store=db", "--grpc=127.0.0.1:0"];
    let run = folder.run_serve(&store, &variable);
    assert_eq!(run.status, Some(2), "{run:?}");
}

/// A default address.
#[test]
fn a_default_port_in_use_is_warned_of_and_done_without() {
    let folder = Folder::new();
    // Another test, or a server of this machine, may have them: that will do.
    let _taken = ["127.0.0.1:11211", "127.0.0.1:9464"].map(TcpListener::bind);
    let mut command = folder.serve_command(&["--memory=16MiB", "--resp=127.0.0.1:0"], &[]);
    let stdout = std::process::Stdio::piped();
    let mut child =
        command.stdout(stdout).stderr(std::process::Stdio::piped()).spawn().expect("it");
    let mut greeting = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().expect("its output"));
    std::io::BufRead::read_line(&mut lines, &mut greeting).expect("its output");
    child.kill().expect("a process");
    let mut messages = String::new();
    child.stderr.take().expect("its messages").read_to_string(&mut messages).expect("a text");
    child.wait().expect("its end");
    assert!(greeting.starts_with("listening at 127.0.0.1:"), "{greeting} {messages}");
    for (name, address) in [("memcache", "127.0.0.1:11211"), ("admin", "127.0.0.1:9464")] {
        let expected = format!("nuthatch: warning: {name} {address} is in use: the server goes on");
        assert!(messages.contains(&expected), "{messages}");
    }
}
