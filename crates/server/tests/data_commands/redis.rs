//! A Redis server for one test.

use nuthatch_server::resp::Version;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

pub(crate) struct Redis {
    process: Child,
    stream: BufReader<UnixStream>,
    /// Redis writes its log to this pipe for as long as it runs.
    _log: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Redis {
    /// Starts a server that nothing else can connect to and that stores nothing on disk.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("redis");
        let mut process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server is needed: scripts/packages redis-server");
        let mut log = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("Ready to accept connections")
            && !line.contains("ready to accept connections at")
        {
            line.clear();
            let len = log.read_line(&mut line).expect("the log of redis-server");
            assert!(len > 0, "redis-server ends as it starts");
        }
        let stream = UnixStream::connect(&socket).expect("redis-server listens");
        Self { process, stream: BufReader::new(stream), _log: log, _folder: folder }
    }

    /// Removes all keys, and switches to this version of the protocol.
    pub(crate) fn begin(&mut self, version: Version) {
        let version = if version == Version::Resp2 { "2" } else { "3" };
        for request in [&["HELLO", version][..], &["FLUSHALL"]] {
            self.run(&[request.iter().map(|word| word.as_bytes().to_vec()).collect()]);
        }
    }

    /// Sends requests, and returns the reply to each.
    pub(crate) fn run(&mut self, requests: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        for request in requests {
            bytes.extend_from_slice(format!("*{}\r\n", request.len()).as_bytes());
            for argument in request {
                bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
                bytes.extend_from_slice(argument);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        self.stream.get_mut().write_all(&bytes).expect("redis-server receives");
        requests.iter().map(|_| self.reply()).collect()
    }

    /// Returns the bytes of one reply.
    fn reply(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_reply(&mut bytes);
        bytes
    }

    fn append_reply(&mut self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        self.stream.read_until(b'\n', bytes).expect("redis-server answers");
        let line = String::from_utf8_lossy(&bytes[start..]).into_owned();
        // A length of -1 stands for a value that does not exist.
        let count = || line[1..].trim_end().parse::<usize>().unwrap_or(0);
        match line.as_bytes().first() {
            Some(b'$' | b'=') if !line.starts_with("$-1") => {
                let at = bytes.len();
                bytes.resize(at + count() + 2, 0);
                self.stream.read_exact(&mut bytes[at..]).expect("redis-server answers");
            }
            Some(b'*' | b'~' | b'>') => (0..count()).for_each(|_| self.append_reply(bytes)),
            Some(b'%') => (0..2 * count()).for_each(|_| self.append_reply(bytes)),
            Some(_) => {}
            None => panic!("redis-server closes the connection"),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already; then nothing is left to do.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
