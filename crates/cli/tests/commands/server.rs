//! A cache server as users start it.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A server that runs. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    /// Where clients of Redis connect.
    pub(crate) resp: String,
    /// Where it tells what it counts.
    pub(crate) admin: String,
}

impl Server {
    /// A server at ports that are free.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nuthatch"))
            .args(["serve", "--resp", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--memcache", "off"])
            .args(["--memory", "64MiB", "--threads", "1"])
            .args(arguments)
            .env_remove("NUTHATCH_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command to start");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().expect("a line").expect("its output");
        let resp = line();
        let resp = resp.strip_prefix("listening at ").and_then(|rest| rest.split(' ').next());
        let admin = line();
        let admin = admin.strip_prefix("metrics at http://");
        let admin = admin.and_then(|rest| rest.strip_suffix("/metrics"));
        let owned = |address: Option<&str>| address.expect("an address").to_owned();
        Self { resp: owned(resp), admin: owned(admin), child }
    }

    /// The first line of what is answered to this.
    pub(crate) fn ask(&self, words: &str) -> String {
        let mut stream = TcpStream::connect(&self.resp).expect("a connection");
        stream.write_all(format!("{words}\r\nQUIT\r\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Ends it as an operator would: how it ended, and what it had logged.
    pub(crate) fn stop(mut self) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a signal");
        let mut logged = String::new();
        let mut stderr = self.child.stderr.take().expect("its errors");
        stderr.read_to_string(&mut logged).expect("a text");
        (self.child.wait().expect("it ends"), logged)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
