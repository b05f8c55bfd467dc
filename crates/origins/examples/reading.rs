//! Measures reads through the cache, compared with a socket and `pread` of the same bytes:
//! `cargo run --release -p nuthatch-origins --example reading`.

#[path = "../tests/reading/server.rs"]
#[expect(dead_code, reason = "the tests use the other items")]
mod server;

use nuthatch_chunks::Options;
use nuthatch_origins::{ChunkedObject, ObjectCache, Settings};
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Number of bytes of the object.
const LEN: usize = 256 << 20;
/// Number of bytes of one read.
const PIECE: usize = 1 << 20;

fn print(what: &str, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    println!("{what:40} {:6.2} GB/s", LEN as f64 / seconds / 1e9);
}

/// Reads the object as a stream, and prints the rate.
async fn stream(what: &str, object: &ChunkedObject) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let mut stream = object.stream(0..object.len())?;
    let mut read = 0;
    while let Some(bytes) = stream.next().await {
        read += bytes?.len();
    }
    assert_eq!(read, LEN);
    print(what, began);
    Ok(())
}

/// Calls `read` for each piece of the object, and prints the rate.
fn pieces(
    what: &str,
    mut read: impl FnMut(&mut [u8], u64) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut piece = vec![0; PIECE];
    let began = Instant::now();
    for at in (0..LEN as u64).step_by(PIECE) {
        read(&mut piece, at)?;
    }
    print(what, began);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let server = server::Server::new(server::noise(LEN, 1));
    let folder = tempfile::tempdir()?;
    let options = Options::new().limit(2 << 30);
    let cache = ObjectCache::open(folder.path().join("cache"), &options, Settings::new())?;
    let object = runtime.block_on(cache.object(&server.url("/a")))?;

    let mut socket = TcpStream::connect(server.url("").trim_start_matches("http://"))?;
    socket.write_all(b"GET /a HTTP/1.1\r\n\r\n")?;
    pieces("socket", |piece, _| Ok(socket.read_exact(piece)?))?;
    runtime.block_on(stream("stream, not in the cache", &object))?;
    println!("{:?}", object.counts());

    let plain = folder.path().join("plain");
    std::fs::write(&plain, vec![1; LEN])?;
    let plain = File::open(plain)?;
    let blocking = object.blocking();
    for _ in 0..2 {
        pieces("pread", |piece, at| Ok(plain.read_exact_at(piece, at)?))?;
        pieces("read_at by a thread, in the cache", |piece, at| {
            let read = blocking.read_at(at, piece)?;
            assert_eq!(read, PIECE);
            Ok(())
        })?;
        runtime.block_on(stream("stream, in the cache", &object))?;
    }
    Ok(())
}
