//! Measures appending, recovering and reading, and writes of the same bytes without a format:
//! `cargo run --release -p nuthatch-tier --example rates -- DIR [MIB]`.

use nuthatch_tier::{AlignedBuffer, Disk, Options, Place, Record, SystemDisk, Tier};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("expected a folder")?;
    let mib = arguments.next().map_or(Ok(512), |text| text.parse())?;
    for round in 0..3 {
        println!("round {round}");
        write_without_format(Path::new(&folder), mib)?;
        for value_len in [100, 1024, 10_240] {
            measure(&Path::new(&folder).join("tier"), value_len, mib)?;
        }
    }
    measure_removals(&Path::new(&folder).join("removed"))
}

/// Appends two million ids to the removal log, on one and on four threads.
fn measure_removals(folder: &Path) -> Outcome {
    for (threads, ids_per_call) in [(1, 1), (4, 1), (1, 32), (4, 32)] {
        let (mut tier, _) = Tier::open(folder, &options(512))?;
        let removals = tier.removals()?;
        let place = tier.append(&Record { value: &[1; 100], ..Record::default() })?;
        let id = tier.reader().record_id(place).ok_or("no file")?;
        let (ids, calls) = (vec![id; ids_per_call], 2_000_000 / ids_per_call / threads);
        let start = Instant::now();
        std::thread::scope(|scope| {
            let append = || (0..calls).try_for_each(|_| removals.append(&ids));
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(append)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        let rate = (calls * threads) as f64 / start.elapsed().as_secs_f64();
        println!("removals, {threads} threads, {ids_per_call} ids: {rate:.0} calls/s");
        tier.clear()?;
    }
    Ok(std::fs::remove_dir_all(folder)?)
}

fn options(mib: u64) -> Options {
    Options { file_len: 64 << 20, ..Options::new((mib << 20) * 2 + (256 << 20)) }
}

/// Writes pieces of 1 MiB with direct I/O, if the filesystem supports it.
fn write_without_format(folder: &Path, mib: u64) -> Outcome {
    std::fs::create_dir_all(folder)?;
    let buffer = AlignedBuffer::new(1 << 20);
    let (directory, start) = (std::fs::File::open(folder)?, Instant::now());
    let file = SystemDisk.create(&directory, "plain")?;
    SystemDisk.allocate(&file, "plain", mib << 20)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    let is_direct = rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::DIRECT).is_ok();
    for piece in 0..mib {
        SystemDisk.write(&file, "plain", buffer.as_slice(), piece << 20)?;
    }
    SystemDisk.sync(&file, "plain")?;
    let seconds = start.elapsed().as_secs_f64();
    println!("  plain writes of 1 MiB, direct: {is_direct}: {:.0} MB/s", megabytes(mib) / seconds);
    SystemDisk.remove(&directory, "plain")?;
    Ok(())
}

fn megabytes(mib: u64) -> f64 {
    (mib << 20) as f64 / 1e6
}

fn measure(folder: &Path, value_len: usize, mib: u64) -> Outcome {
    let _ = std::fs::remove_dir_all(folder);
    let (mut tier, _) = Tier::open(folder, &options(mib))?;
    let value = vec![7; value_len];
    let count = (mib << 20) / (value_len as u64 + 60);
    let mut places: Vec<Place> = Vec::new();
    let start = Instant::now();
    for number in 0..count {
        let key = format!("key:{number:012}");
        let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let record = Record { key: key.as_bytes(), value: &value, hash, ..Record::default() };
        let place = tier.append(&record)?;
        if number % (count / 20_000).max(1) == 0 {
            places.push(place);
        }
    }
    tier.flush()?;
    let seconds = start.elapsed().as_secs_f64();
    let payload = (count * (value_len as u64 + 16)) as f64;
    print!("  {value_len} B: append {:.2} M records/s", count as f64 / seconds / 1e6);
    print!(", {:.0} MB/s of keys and values", payload / seconds / 1e6);
    read_back(&tier, &places)?;
    tier.close()?;

    let start = Instant::now();
    let (tier, recovery) = Tier::open(folder, &options(mib))?;
    let opened = start.elapsed();
    let reader = tier.reader();
    let mut sum = 0_u64;
    for number in reader.numbers().into_iter().rev() {
        let (directory, _) = reader.directory(number).ok_or("a file")?;
        for entry in directory.iter().rev() {
            sum = sum.wrapping_add(entry.hash ^ entry.place.pack());
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    print!("; open {:.1} ms", opened.as_secs_f64() * 1e3);
    print!(", directories {:.1} M records/s", recovery.records as f64 / seconds / 1e6);
    let start = Instant::now();
    let loaded = reader.all_records(|place, _| {
        sum = sum.wrapping_add(place.pack());
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    print!(", load {:.1} M records/s", loaded.records as f64 / seconds / 1e6);
    println!(
        "; bytes on disk / (keys + values) {:.3}; {sum:x}",
        tier.used_bytes() as f64 / payload
    );
    Ok(())
}

fn read_back(tier: &Tier, places: &[Place]) -> Outcome {
    let (reader, mut buffer) = (tier.reader(), AlignedBuffer::new(1 << 16));
    let start = Instant::now();
    let mut at = 0;
    for _ in 0..places.len().min(5000) {
        at = (at + 7919) % places.len();
        let plan = reader.read_plan(places[at]).ok_or("a written record")?;
        let bytes = &mut buffer.as_mut_slice()[..plan.len()];
        SystemDisk.read(plan.file(), "", bytes, plan.offset())?;
        plan.parse_any(bytes)?;
    }
    let each = start.elapsed() / places.len().min(5000) as u32;
    print!("; read {each:?} each");
    Ok(())
}
