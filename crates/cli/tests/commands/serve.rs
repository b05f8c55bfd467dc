//! The server as users run it.

use crate::folder::Folder;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

#[test]
fn the_event_loop_is_told_in_the_first_line() {
    let folder = Folder::new();
    for name in ["io_uring", "epoll"] {
        let arguments = [
            "serve",
            "--resp",
            "127.0.0.1:0",
            "--memory",
            "16MiB",
            "--threads",
            "1",
            "--event-loop",
        ];
        let mut command = folder.command(&[&arguments[..], &[name]].concat());
        let mut server = command.stdout(Stdio::piped()).spawn().expect("the command");
        let mut lines = BufReader::new(server.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let first = line();
        assert!(first.ends_with(&format!("1 thread on {name}")), "{first}");
        let second = line();
        let address = second.split(' ').nth(2).expect("an address");
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(b"INFO server\r\nQUIT\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answers, then the end");
        assert!(answer.contains(&format!("\r\nmultiplexing_api:{name}\r\n")), "{answer}");
        server.kill().expect("it runs");
        server.wait().expect("it ends");
    }
}

#[test]
fn an_event_loop_that_there_is_not_is_refused() {
    let run = Folder::new().run(&["serve", "--event-loop", "kqueue"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("[possible values: auto, io_uring, epoll]"), "{}", run.stderr);
}
