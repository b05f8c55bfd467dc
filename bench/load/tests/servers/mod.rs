//! Servers for tests: threads on loopback with configurable replies.

use nuthatch_load::{Address, KEY_BYTES, Protocol};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The values that a server has stored.
pub(crate) type Store = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// A function from the unprocessed bytes to the length of the first message and its reply. It
/// returns `None` while the message is incomplete.
pub(crate) type Answer = Arc<dyn Fn(&[u8]) -> Option<(usize, Vec<u8>)> + Send + Sync>;

/// Starts a server that runs until the test process ends.
pub(crate) fn start(answer: Answer) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            thread::spawn(move || serve(stream, &answer));
        }
    });
    Address::Tcp(address)
}

/// A reply that closes the connection.
pub(crate) const CLOSE: &[u8] = b"close";

fn serve(mut stream: TcpStream, answer: &Answer) {
    let (mut input, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        input.extend_from_slice(&buffer[..len]);
        let (mut taken, mut output) = (0, Vec::new());
        while let Some((len, reply)) = answer(&input[taken..]) {
            if reply == CLOSE {
                return;
            }
            taken += len;
            output.extend_from_slice(&reply);
        }
        input.drain(..taken);
        if stream.write_all(&output).is_err() {
            return;
        }
    }
}

/// Starts a server that stores and returns values of one size.
pub(crate) fn cache(protocol: Protocol, value_bytes: usize) -> (Address, Store) {
    let store = Store::default();
    let of_server = Arc::clone(&store);
    let answer = move |bytes: &[u8]| message(protocol, value_bytes, bytes, &of_server);
    (start(Arc::new(answer)), store)
}

/// The encoding of requests and replies, by protocol.
struct Wire {
    get: (Vec<u8>, &'static [u8]),
    set: (Vec<u8>, Vec<u8>, &'static [u8]),
    stored: &'static [u8],
    miss: &'static [u8],
}

fn wire(protocol: Protocol, size: usize) -> Wire {
    let resp_set = b"*3\r\n$3\r\nSET\r\n$16\r\n".to_vec();
    match protocol {
        Protocol::Resp => Wire {
            get: (b"*2\r\n$3\r\nGET\r\n$16\r\n".to_vec(), b"\r\n"),
            set: (resp_set, format!("\r\n${size}\r\n").into(), b"\r\n"),
            stored: b"+OK\r\n",
            miss: b"$-1\r\n",
        },
        Protocol::Memcache => Wire {
            get: (b"get ".to_vec(), b"\r\n"),
            set: (b"set ".to_vec(), format!(" 0 0 {size}\r\n").into(), b"\r\n"),
            stored: b"STORED\r\n",
            miss: b"END\r\n",
        },
        Protocol::Meta => Wire {
            get: (b"mg ".to_vec(), b" v\r\n"),
            set: (b"ms ".to_vec(), format!(" {size}\r\n").into(), b"\r\n"),
            stored: b"HD\r\n",
            miss: b"EN\r\n",
        },
        Protocol::Mrcache => Wire {
            get: (vec![0, 1, 16, 0], b""),
            set: ([&[0, 2, 16, 0][..], &(size as u32).to_le_bytes()].concat(), vec![], b""),
            stored: b"",
            miss: &[0; 4],
        },
        Protocol::Pmc => Wire {
            get: (b"GET ".to_vec(), b"\x1F"),
            set: (b"SET ".to_vec(), b" ".to_vec(), b"\x1F"),
            stored: b"OK\x1F",
            miss: b"(nil)\x1F",
        },
    }
}

fn hit(protocol: Protocol, key: &[u8], value: &[u8]) -> Vec<u8> {
    let (key, size) = (String::from_utf8_lossy(key), value.len());
    match protocol {
        Protocol::Resp => [format!("${size}\r\n").as_bytes(), value, b"\r\n"].concat(),
        Protocol::Memcache => {
            [format!("VALUE {key} 0 {size}\r\n").as_bytes(), value, b"\r\nEND\r\n"].concat()
        }
        Protocol::Meta => [format!("VA {size}\r\n").as_bytes(), value, b"\r\n"].concat(),
        Protocol::Mrcache => [&(size as u32).to_le_bytes(), value].concat(),
        Protocol::Pmc => [value, b"\x1F"].concat(),
    }
}

fn message(
    protocol: Protocol,
    size: usize,
    bytes: &[u8],
    store: &Store,
) -> Option<(usize, Vec<u8>)> {
    let Wire { get, set, stored, miss } = wire(protocol, size);
    let mut store = store.lock().expect("no thread of a server panics");
    if bytes.starts_with(&get.0) {
        let len = get.0.len() + KEY_BYTES + get.1.len();
        let key = bytes.get(get.0.len()..len)?.split_at(KEY_BYTES);
        assert_eq!(key.1, get.1, "the end of a get");
        let reply = store.get(key.0).map(|value| hit(protocol, key.0, value));
        return Some((len, reply.unwrap_or_else(|| miss.to_vec())));
    }
    let len = set.0.len() + KEY_BYTES + set.1.len() + size + set.2.len();
    let (before, rest) = bytes.get(..len)?.split_at(set.0.len());
    let (key, rest) = rest.split_at(KEY_BYTES);
    let (between, rest) = rest.split_at(set.1.len());
    let (value, after) = rest.split_at(size);
    assert_eq!([before, between, after], [&set.0[..], &set.1, set.2], "the parts of a set");
    store.insert(key.to_vec(), value.to_vec());
    Some((len, stored.to_vec()))
}
