//! Eight processes use one small folder while they are killed at random, and while their files are
//! truncated, damaged and deleted: no wrong byte is read, the limit always holds, and no process
//! hangs or fails.
//!
//! A program of its own: `cargo test -p nuthatch-chunks --test resilience -- SECONDS [SEED]` runs
//! it for longer than the default of ten seconds.

mod damage;
mod watch;
mod worker;

use damage::Damage;
use nuthatch_testing::random::Random;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const WORKERS: usize = 8;
pub(crate) const LIMIT: u64 = 24 << 20;
const ROLE: &str = "NUTHATCH_RESILIENCE_FOLDER";
/// A worker without output for this long hangs.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// A worker process and its output.
struct Worker {
    child: Child,
    /// Number of operations, and of those that found everything.
    done: Arc<[AtomicU64; 2]>,
    seen: (u64, Instant),
}

impl Worker {
    fn start(folder: &Path, seed: u64) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .env(ROLE, folder)
            .arg(seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("another process");
        let done = Arc::<[AtomicU64; 2]>::default();
        let (lines, count) =
            (BufReader::new(child.stdout.take().expect("its output")), done.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                for (count, word) in count.iter().zip(line.split(' ')) {
                    count.store(word.parse().unwrap_or(0), Ordering::Relaxed);
                }
            }
        });
        Self { child, done, seen: (0, Instant::now()) }
    }

    /// Returns what is wrong with the worker, if anything.
    fn complaint(&mut self) -> Option<String> {
        if let Some(status) = self.child.try_wait().expect("its state") {
            return Some(format!("a worker ended: {status}"));
        }
        let [done, _] = self.counts();
        if done != self.seen.0 {
            self.seen = (done, Instant::now());
        }
        let silent = self.seen.1.elapsed();
        (silent > MAX_SILENCE).then(|| format!("a worker hangs after {done} operations"))
    }

    fn counts(&self) -> [u64; 2] {
        [&self.done[0], &self.done[1]].map(|count| count.load(Ordering::Relaxed))
    }

    fn kill(mut self) -> [u64; 2] {
        self.child.kill().expect("a signal");
        self.child.wait().expect("its end");
        self.counts()
    }

    /// Lets the worker end by itself.
    fn end(mut self) -> Result<[u64; 2], String> {
        drop(self.child.stdin.take());
        let began = Instant::now();
        loop {
            match self.child.try_wait().expect("its state") {
                Some(status) if status.success() => return Ok(self.counts()),
                Some(status) => return Err(format!("a worker failed at its end: {status}")),
                None if began.elapsed() > MAX_SILENCE => {
                    self.kill();
                    return Err("a worker does not end".to_owned());
                }
                None => std::thread::park_timeout(Duration::from_millis(5)),
            }
        }
    }
}

fn run(folder: &Path, seconds: u64, seed: u64) -> Result<String, String> {
    let mut random = Random::new(seed);
    let start = |random: &mut Random| Worker::start(folder, random.next_u64());
    let mut workers: Vec<_> = (0..WORKERS).map(|_| start(&mut random)).collect();
    let (stop, stopped) = mpsc::channel();
    let watched = folder.to_owned();
    let watch = std::thread::spawn(move || watch::limit(&watched, &stopped));
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut operations, mut hits, mut kills) = (0, 0, 0);
    let mut damages = [0; damage::KINDS];
    let mut complaint = None;
    while Instant::now() < end && complaint.is_none() && !watch.is_finished() {
        std::thread::park_timeout(Duration::from_millis(20 + random.below(40)));
        complaint = workers.iter_mut().find_map(Worker::complaint);
        if random.below(4) == 0 {
            let worker = random.below(WORKERS as u64) as usize;
            let fresh = start(&mut random);
            let [done, found] = std::mem::replace(&mut workers[worker], fresh).kill();
            operations += done;
            hits += found;
            kills += 1;
        }
        if random.below(3) == 0 {
            let kind = Damage::any(&mut random);
            damages[kind as usize] += u64::from(kind.inflict(folder, &mut random));
        }
    }
    let mut ended = Ok(());
    for worker in workers {
        match worker.end() {
            Ok([done, found]) => {
                operations += done;
                hits += found;
            }
            Err(error) => ended = Err(error),
        }
    }
    let _ = stop.send(());
    let looks = watch.join().map_err(|_| "the watch of the limit panicked".to_owned())??;
    complaint.map_or(Ok(()), Err).and(ended)?;
    if hits * 20 < operations {
        return Err(format!("of {operations} operations, only {hits} found something"));
    }
    Ok(format!(
        "{operations} operations, {hits} hits, {kills} kills, damages {damages:?}, \
         {looks} looks at the limit"
    ))
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    if let Some(folder) = std::env::var_os(ROLE) {
        return worker::work(&PathBuf::from(folder), numbers.next().unwrap_or(1));
    }
    let seconds = numbers.next().unwrap_or(10);
    let seed = numbers.next().unwrap_or_else(|| u64::from(std::process::id()));
    println!("resilience: {seconds} seconds with seed {seed}");
    let folder = tempfile::tempdir().expect("a folder");
    match run(&folder.path().join("cache"), seconds, seed) {
        Ok(summary) => {
            println!("resilience: {summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("resilience: seed {seed}: {error}");
            ExitCode::FAILURE
        }
    }
}
