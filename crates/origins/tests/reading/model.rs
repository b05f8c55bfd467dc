//! Random reads, seeks and changes, compared with the bytes in memory.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::{ChunkedObject, Error};
use nuthatch_testing::random::Random;
use std::io::SeekFrom;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// An open object, its expected bytes and the expected position.
struct Reader {
    object: ChunkedObject,
    bytes: Arc<Vec<u8>>,
    position: u64,
}

impl Reader {
    /// Runs a random operation and checks its result. Returns `false` if the object changed.
    async fn step(&mut self, random: &mut Random) -> bool {
        let len = self.bytes.len() as u64;
        let outcome = match random.below(5) {
            0 => {
                let to = random.below(len + 2 * BLOCK);
                self.position = to;
                let sought = self.object.seek(SeekFrom::Start(to)).await;
                assert_eq!(sought.expect("a place"), to);
                return true;
            }
            1 | 2 => {
                let mut out = vec![0; random.below(6 * BLOCK) as usize + 1];
                let read = self.object.read(&mut out).await.map_err(|error| error.kind());
                read.map(|read| {
                    let start = self.position.min(len) as usize;
                    assert_eq!(out[..read], self.bytes[start..start + read]);
                    assert!(read > 0 || start as u64 == len, "0 bytes before the end");
                    self.position += read as u64;
                })
            }
            3 => {
                let offset = random.below(len + BLOCK);
                let mut out = vec![0; random.below(20 * BLOCK) as usize];
                let read = self.object.read_at(offset, &mut out).await;
                read.map_err(kind).map(|read| {
                    let start = offset.min(len) as usize;
                    assert_eq!(read, out.len().min(self.bytes.len() - start));
                    assert_eq!(out[..read], self.bytes[start..start + read]);
                })
            }
            _ => {
                let start = random.below(len);
                let range = start..start + random.below(len - start);
                let expected = self.bytes[range.start as usize..range.end as usize].to_vec();
                self.object.bytes(range).await.map_err(kind).map(|read| assert_eq!(read, expected))
            }
        };
        match outcome {
            Ok(()) => true,
            Err(kind) => {
                assert_eq!(kind, std::io::ErrorKind::StaleNetworkFileHandle, "another error");
                false
            }
        }
    }
}

fn kind(error: Error) -> std::io::ErrorKind {
    std::io::Error::from(error).kind()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_one_version_each() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let len = random.below(60 * BLOCK) as usize + 1;
        let mut bytes = Arc::new(noise(len, seed));
        let server = Server::new(bytes.to_vec());
        server.configure(|behaviour| {
            behaviour.ignores_ranges = seed % 4 == 3;
            behaviour.ignores_conditions = seed % 3 == 2;
        });
        let place = Place::new(quick().max_gap(random.below(3) * BLOCK).retries(50));
        let url = server.url("/a");
        let mut readers: Vec<Reader> = Vec::new();
        for step in 0..400 {
            match random.below(20) {
                0 if readers.len() < 5 => {
                    let object = place.cache.object(&url).await.expect("an object");
                    readers.push(Reader { object, bytes: bytes.clone(), position: 0 });
                }
                1 if step % 7 == 0 => {
                    bytes = Arc::new(noise(random.below(60 * BLOCK) as usize + 1, seed + step));
                    let (body, tag) = (bytes.clone(), format!("\"{seed}-{step}\""));
                    server.configure(|behaviour| {
                        (behaviour.body, behaviour.etag) = (body, Some(tag));
                    });
                }
                2 => server.configure(|behaviour| behaviour.statuses = [503, 200, 500].into()),
                3 => {
                    let cut = random.below(3 * BLOCK) as usize;
                    server.configure(|behaviour| behaviour.cuts = [cut, 10].into());
                }
                4 => drop(place.cache.chunks().expect("a folder").clear()),
                _ => {}
            }
            if readers.is_empty() {
                continue;
            }
            let which = random.below(readers.len() as u64) as usize;
            if !readers[which].step(&mut random).await {
                assert!(
                    !Arc::ptr_eq(&readers[which].bytes, &bytes),
                    "seed {seed}: the object did not change"
                );
                readers.swap_remove(which);
            }
        }
    }
}
