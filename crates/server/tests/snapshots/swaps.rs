//! Tests new generations: they replace the one before while clients read, or are rejected.

use crate::harness::{Reply, Setup, Site, build, file, open, wait_until};
use crate::served::with_every_io_backend;
use nuthatch_server::IoBackend;
use nuthatch_server::state::{OpenError, SnapshotMemory};
use nuthatch_snapshot::Value;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const KEYS: usize = 500;

/// Builds a generation in which the values of all keys begin with its number.
fn generation(path: &Path, number: u64) {
    let text = format!("{number}:").repeat(20);
    let entries = (0..KEYS).map(|key| (format!("{key}"), Value::String(text.as_str())));
    build(path, entries);
}

/// Returns the number of the generation that all of these values are of.
fn number_of(values: &[Reply]) -> u64 {
    let first = values[0].clone().text();
    let number = first.split(':').next().expect("a number");
    assert_eq!(first, format!("{number}:").repeat(20));
    assert!(values.iter().all(|value| *value == values[0]), "values of two generations");
    number.parse().expect("a number")
}

with_every_io_backend! {
    clients_never_see_values_of_two_generations_in_one_reply
    an_idle_server_frees_the_old_generation
}

fn clients_never_see_values_of_two_generations_in_one_reply(io_backend: IoBackend) {
    const GENERATIONS: u64 = 12;
    let setup = Setup { threads: 2, io_backend, ..Setup::default() };
    let site = Site::start(&setup, |folder| generation(&file(folder, "users"), 0));
    let is_done = AtomicBool::new(false);
    let keys = |first: usize| (first..first + 20).map(|key| format!(" users:{}", key % KEYS));
    thread::scope(|scope| {
        for reader in 0..4 {
            let (mut client, is_done, keys) = (site.resp(), &is_done, &keys);
            scope.spawn(move || {
                let (mut last, mut round) = (0, reader * 100);
                while !is_done.load(Ordering::Acquire) || last + 1 < GENERATIONS {
                    let mget = format!("MGET{}", keys(round).collect::<String>());
                    let values = if reader % 2 == 0 {
                        client.ask(&mget).list()
                    } else {
                        client.ask("MULTI");
                        keys(round).for_each(|key| {
                            client.ask(&format!("GET{key}"));
                        });
                        client.ask("EXEC").list()
                    };
                    let number = number_of(&values);
                    assert!(number >= last, "an older generation");
                    (last, round) = (number, round + 1);
                }
            });
        }
        let mut client = site.resp();
        for number in 1..GENERATIONS {
            generation(&site.path("users"), number);
            client.wait_for("users", "switches", |now| now == number.to_string());
        }
        is_done.store(true, Ordering::Release);
    });
    let mut client = site.resp();
    assert_eq!(client.report("users", "rejected"), "0");
    assert_eq!(client.report("users", "error"), "");
}

fn an_idle_server_frees_the_old_generation(io_backend: IoBackend) {
    let setup = Setup { threads: 2, io_backend, ..Setup::default() };
    let site = Site::start(&setup, |folder| generation(&file(folder, "users"), 0));
    let mut client = site.resp();
    assert_eq!(number_of(&[client.ask("GET users:1")]), 0);
    generation(&site.path("users"), 1);
    client.wait_for("users", "switches", |now| now == "1");
    // The file of the old generation has no name, and no longer a map.
    let path = site.path("users").display().to_string();
    wait_until("an unmapped file", || {
        let maps = fs::read_to_string("/proc/self/maps").expect("the maps of this process");
        !maps.lines().any(|line| line.contains(&path) && line.ends_with("(deleted)"))
    });
}

#[test]
fn a_damaged_or_missing_generation_leaves_the_one_before() {
    let site = Site::start(&Setup::default(), |folder| generation(&file(folder, "users"), 0));
    let mut client = site.resp();
    let path = site.path("users");
    let folder = site.folder.path();
    let new = folder.join("new");
    generation(&new, 1);
    let good = fs::read(&new).expect("a snapshot");
    let mut damaged = good.clone();
    let at = damaged.len() - 100;
    damaged[at] ^= 1;
    for (count, bytes) in [(1, Some(&damaged[..])), (2, Some(b"no snapshot")), (3, None)] {
        match bytes {
            Some(bytes) => {
                fs::write(&new, bytes).expect("a file");
                fs::rename(&new, &path).expect("renamed");
            }
            None => fs::remove_file(&path).expect("a file"),
        }
        client.wait_for("users", "rejected", |now| now == count.to_string());
        assert_ne!(client.report("users", "error"), "");
        assert_eq!(number_of(&[client.ask("GET users:7")]), 0);
    }
    fs::write(&new, &good).expect("a file");
    fs::rename(&new, &path).expect("renamed");
    client.wait_for("users", "switches", |now| now == "1");
    assert_eq!(client.report("users", "error"), "");
    assert_eq!(number_of(&[client.ask("GET users:7")]), 1);
}

#[test]
fn a_symbolic_link_is_followed() {
    let folders = ["1", "2"];
    let site = Site::start(&Setup::default(), |folder| {
        for (number, name) in (0..).zip(folders) {
            fs::create_dir(folder.join(name)).expect("a folder");
            generation(&folder.join(name).join("data.nut"), number);
        }
        std::os::unix::fs::symlink("1/data.nut", file(folder, "users")).expect("a link");
    });
    let mut client = site.resp();
    assert_eq!(number_of(&[client.ask("GET users:1")]), 0);
    let link = site.folder.path().join("link");
    std::os::unix::fs::symlink("2/data.nut", &link).expect("a link");
    fs::rename(link, site.path("users")).expect("renamed");
    client.wait_for("users", "switches", |now| now == "1");
    assert_eq!(number_of(&[client.ask("GET users:1")]), 1);
}

#[test]
fn a_generation_that_does_not_fit_in_memory_is_refused_unless_it_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "users");
    generation(&path, 0);
    let len = fs::metadata(&path).expect("a file").len();
    let memory =
        |max_bytes, allows_oversize| SnapshotMemory { max_bytes: Some(max_bytes), allows_oversize };
    let setup = |memory| Setup { memory, ..Setup::default() };
    let refused = open(folder.path(), &setup(memory(len - 1, false)));
    match refused.map(drop) {
        Err(OpenError::TooLarge { name, found, max }) => {
            assert_eq!((name.as_str(), found, max), ("users", len, len - 1));
        }
        other => panic!("{other:?}"),
    }
    assert!(open(folder.path(), &setup(memory(len - 1, true))).is_ok());
    assert!(open(folder.path(), &setup(memory(len, false))).is_ok());

    // A new generation must fit beside the one that it replaces.
    let start =
        |memory| Site::start(&setup(memory), |folder| generation(&file(folder, "users"), 0));
    let site = start(memory(2 * len - 1, false));
    let mut client = site.resp();
    generation(&site.path("users"), 1);
    client.wait_for("users", "rejected", |now| now == "1");
    let error = client.report("users", "error");
    assert!(error.contains("at most") && error.contains(&len.to_string()), "{error}");
    assert_eq!(number_of(&[client.ask("GET users:1")]), 0);
    for site in [start(memory(2 * len, false)), start(memory(1, true))] {
        let mut client = site.resp();
        generation(&site.path("users"), 1);
        client.wait_for("users", "switches", |now| now == "1");
        assert_eq!(number_of(&[client.ask("GET users:1")]), 1);
    }
}

#[test]
fn a_missing_or_damaged_snapshot_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "users");
    let refused = |contains: &str| {
        let error = open(folder.path(), &Setup::default()).expect_err("refused").to_string();
        assert!(error.starts_with("snapshot users: ") && error.contains(contains), "{error}");
    };
    refused("No such file");
    generation(&path, 0);
    let mut bytes = fs::read(&path).expect("a file");
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    fs::write(&path, bytes).expect("a file");
    refused("damaged file");
}
