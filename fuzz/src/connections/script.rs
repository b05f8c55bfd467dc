//! Interprets arbitrary bytes as a script of actions on up to four connections.
//!
//! Each action begins with a byte. Its lowest two bits select the connection, and the next three
//! bits the kind of action.

use super::servers::Servers;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

const CONNECTIONS: usize = 4;

/// Maximum number of actions in a script, which bounds its duration.
const MAX_ACTIONS: usize = 200;

/// Requests that the fuzzer would find only after a long search.
const REQUESTS: &[&[u8]] = &[
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n100\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n$20\r\n0123456789abcdefghij\r\n",
    b"MULTI\r\nINCR n\r\nGET n\r\nEXEC\r\n",
    b"MULTI\r\nWATCH k\r\nDISCARD\r\nWATCH k\r\nMULTI\r\n",
    b"HELLO 3\r\nCLIENT LIST\r\nINFO\r\n",
    b"AUTH ann sesame\r\nAUTH ann wrong\r\nRESET\r\n",
    b"CLIENT KILL TYPE normal SKIPME no\r\n",
    b"CLIENT REPLY SKIP\r\nCLIENT REPLY OFF\r\n",
    b"CONFIG SET timeout 1 maxclients 2\r\nQUIT\r\n",
    b"SETRANGE k 60000 x\r\nGET k\r\nLCS k k IDX\r\n",
    b"MGET k k k k k k k k\r\nKEYS *\r\nSCAN 0 COUNT 100\r\nFLUSHALL\r\n",
    b"*1000\r\n$1\r\nx\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n",
    b"set k 1 0 3\r\n100\r\n",
    b"gets k k k\r\nincr k 5\r\ngat 100 k\r\n",
    b"set k 0 0 70000\r\n",
    b"set x 0 0 10\r\nann sesame\r\n",
    b"ms k S3 T10 c\r\nabc\r\nmg k v c t f s k q\r\nmn\r\n",
    b"ma n N10 J5 v\r\nmd k I\r\nmg k R30 v\r\nme k\r\n",
    b"flush_all 1\r\nstats\r\nverbosity 1\r\nquit\r\n",
    b"SET k value\x1fGET k\x1fDEL k\x1f\x1f\x1f",
    b"SET k ",
    b"\0\x02\x01\0\x03\0\0\0kval\0\x01\x01\0k",
    b"\0\x04\x01\0\x03\0\0\0kval\0\x03\x01\0k\0\x05",
    b"\0\x02\x01\0\xff\xff\0\0k",
];

/// The remaining bytes of a script.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn piece(&mut self, len: usize) -> &'a [u8] {
        let (piece, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        piece
    }
}

/// A connection of a script.
#[derive(Default)]
struct Connection<'a> {
    stream: Option<UnixStream>,
    last: &'a [u8],
}

impl<'a> Connection<'a> {
    /// Sends as many bytes as the socket accepts. The server may have closed the connection.
    fn send(&mut self, piece: &'a [u8]) {
        self.last = piece;
        if let Some(stream) = &mut self.stream {
            let _ = stream.write(piece);
        }
    }

    fn read(&mut self, len: usize) {
        if let Some(stream) = &mut self.stream {
            let _ = stream.read(&mut vec![0; len]);
        }
    }

    /// Executes one action. Returns `None` at the end of the script.
    fn execute(&mut self, what: u8, script: &mut Bytes<'a>, servers: &Servers) -> Option<()> {
        match what {
            0 => self.stream = Some(servers.connect(script.byte()?)),
            1 => {
                let len = script.byte()?;
                self.send(script.piece(len.into()));
            }
            2 => {
                for _ in 0..=script.byte()? {
                    self.send(self.last);
                }
            }
            3 => self.send(REQUESTS[usize::from(script.byte()?) % REQUESTS.len()]),
            4 => self.read((usize::from(script.byte()?) + 1) * 64),
            5 => {
                if let Some(stream) = &self.stream {
                    let _ = stream.shutdown(Shutdown::Write);
                }
            }
            6 => self.stream = None,
            _ => servers.settle(),
        }
        Some(())
    }
}

/// Executes a script, then checks that the servers have released its resources.
pub fn run(script: &[u8]) {
    let servers = Servers::get();
    let mut script = Bytes(script);
    let mut connections: [Connection<'_>; CONNECTIONS] = Default::default();
    for _ in 0..MAX_ACTIONS {
        let Some(byte) = script.byte() else { break };
        let connection = &mut connections[usize::from(byte & 3)];
        if connection.execute(byte >> 2 & 7, &mut script, &servers).is_none() {
            break;
        }
    }
    drop(connections);
    servers.check();
}
