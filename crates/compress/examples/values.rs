//! Measures size and speed of compressed values, beside the calls of zstd:
//!
//! `cargo run --release -p nuthatch-compress --example values -- FILE...`
//!
//! Each line of a file is a value; `scripts/json_values` makes such files from packages. Three of
//! four values train a dictionary. The others are measured at levels 1, 3 and 9, plain and with the
//! dictionary. Rounds of all systems are interleaved, and the time is that of the fastest of 31
//! rounds, because other processes on the machine only add to it.

use nuthatch_compress::{
    Codec, DEFAULT_DICTIONARY_BYTES, Dictionaries, Dictionary, Encoded, train,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict, compress_bound};

type AnyResult<T> = Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 31;

/// The values of a round, raw and encoded by one system.
struct System {
    name: &'static str,
    encoded: Vec<Vec<u8>>,
    compress_ns: Vec<f64>,
    decompress_ns: Vec<f64>,
}

fn main() -> AnyResult<()> {
    println!("file | system | level | bytes per value | compress ns | decompress ns");
    println!("---|---|--:|--:|--:|--:");
    for path in std::env::args_os().skip(1) {
        let text = std::fs::read(&path)?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let values: Vec<Box<[u8]>> = lines.map(Box::from).collect();
        let held_out: Vec<_> = values.iter().skip(3).step_by(4).cloned().collect();
        let trained = train(values, DEFAULT_DICTIONARY_BYTES, 3, None)?;
        let raw: usize = held_out.iter().map(|value| value.len()).sum();
        let name = std::path::Path::new(&path).file_stem().unwrap_or_default().display();
        println!("{name} | raw, {} values | | {} | |", held_out.len(), raw / held_out.len());
        for level in [1, 3, 9] {
            let (plain, with_dictionary) = (None, Some(&trained.bytes[..]));
            let mut systems = [
                System::new("zstd"),
                System::new("nuthatch"),
                System::new("zstd, dictionary"),
                System::new("nuthatch, dictionary"),
            ];
            for _ in 0..ROUNDS {
                systems[0].zstd(&held_out, level, plain)?;
                systems[1].nuthatch(&held_out, level, plain)?;
                systems[2].zstd(&held_out, level, with_dictionary)?;
                systems[3].nuthatch(&held_out, level, with_dictionary)?;
            }
            for system in &systems {
                let bytes: usize = system.encoded.iter().map(Vec::len).sum();
                let per_value = bytes as f64 / held_out.len() as f64;
                let (compress, decompress) =
                    (fastest(&system.compress_ns), fastest(&system.decompress_ns));
                let name_of_system = system.name;
                println!(
                    "{name} | {name_of_system} | {level} | {per_value:.1} | {compress:.0} | \
                     {decompress:.0}"
                );
            }
        }
    }
    Ok(())
}

impl System {
    fn new(name: &'static str) -> Self {
        Self { name, encoded: Vec::new(), compress_ns: Vec::new(), decompress_ns: Vec::new() }
    }

    /// Measures a round of the calls of zstd.
    fn zstd(&mut self, values: &[Box<[u8]>], level: i32, bytes: Option<&[u8]>) -> AnyResult<()> {
        let error = |code| zstd::zstd_safe::get_error_name(code);
        let (mut compression, mut decompression) = (CCtx::create(), DCtx::create());
        let dictionary = bytes.map(|bytes| (CDict::create(bytes, level), DDict::create(bytes)));
        let mut buffer = Vec::with_capacity(compress_bound(64 << 10));
        self.encoded.clear();
        for is_measured in [false, true] {
            let start = Instant::now();
            for value in values {
                buffer.clear();
                match &dictionary {
                    Some((dictionary, _)) => {
                        compression.compress_using_cdict(&mut buffer, value, dictionary)
                    }
                    None => compression.compress(&mut buffer, value, level),
                }
                .map_err(error)?;
                black_box(&buffer);
                if !is_measured {
                    self.encoded.push(buffer.clone());
                }
            }
            if is_measured {
                self.compress_ns.push(per_value(start, values.len()));
            }
        }
        for is_measured in [false, true] {
            let start = Instant::now();
            for encoded in &self.encoded {
                buffer.clear();
                match &dictionary {
                    Some((_, dictionary)) => {
                        decompression.decompress_using_ddict(&mut buffer, encoded, dictionary)
                    }
                    None => decompression.decompress(&mut buffer, encoded),
                }
                .map_err(error)?;
                black_box(&buffer);
            }
            if is_measured {
                self.decompress_ns.push(per_value(start, values.len()));
            }
        }
        Ok(())
    }

    /// Measures a round of a codec. A value that is stored raw is copied.
    fn nuthatch(
        &mut self,
        values: &[Box<[u8]>],
        level: i32,
        bytes: Option<&[u8]>,
    ) -> AnyResult<()> {
        let dictionaries = Arc::new(Dictionaries::new(level, 64 << 20));
        let _dictionary: Option<Arc<Dictionary>> =
            bytes.map(|bytes| dictionaries.use_for_all(bytes)).transpose()?;
        let mut codec = Codec::new(&dictionaries)?.min_len(1);
        let mut buffer = Vec::new();
        let mut is_raw = Vec::new();
        self.encoded.clear();
        for is_measured in [false, true] {
            let start = Instant::now();
            for value in values {
                let encoded = codec.compress(b"value:1:json", value, &mut buffer);
                match black_box(encoded) {
                    Encoded::Compressed(encoded) if !is_measured => {
                        self.encoded.push(encoded.to_vec());
                        is_raw.push(false);
                    }
                    Encoded::Raw if !is_measured => {
                        self.encoded.push(value.to_vec());
                        is_raw.push(true);
                    }
                    Encoded::Raw | Encoded::Compressed(_) => {}
                }
            }
            if is_measured {
                self.compress_ns.push(per_value(start, values.len()));
            }
        }
        for is_measured in [false, true] {
            let start = Instant::now();
            for (encoded, is_raw) in self.encoded.iter().zip(&is_raw) {
                buffer.clear();
                if *is_raw {
                    buffer.extend_from_slice(encoded);
                } else {
                    codec.decompress(encoded, 1 << 20, &mut buffer)?;
                }
                black_box(&buffer);
            }
            if is_measured {
                self.decompress_ns.push(per_value(start, values.len()));
            }
        }
        Ok(())
    }
}

fn per_value(start: Instant, values: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / values as f64
}

fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
