//! Reads from another implementation of S3: moto's server.

use nuthatch_chunks::Options;
use nuthatch_origins::{ObjectCache, Settings};
use nuthatch_testing::moto::Moto;
use nuthatch_testing::random;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variables with the address that the child reads and the folder of its cache.
const ADDRESS: &str = "NUTHATCH_TEST_S3";
const FOLDER: &str = "NUTHATCH_TEST_FOLDER";

/// Reads an object in a child process. Returns its standard output and the bytes.
fn read(moto: &Moto, folder: &Path, address: &str) -> (String, Vec<u8>) {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "child", "--nocapture"]).env(ADDRESS, address).env(FOLDER, folder);
    moto.configure(&mut child);
    let output = child.output().expect("the child");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !text.contains("5ecret"), "{text}");
    (text, output.stderr)
}

/// The child process. Does nothing without its variables.
#[test]
fn child() {
    let (Ok(address), Some(folder)) = (std::env::var(ADDRESS), std::env::var_os(FOLDER)) else {
        return;
    };
    let options = Options::new().limit(64 << 20).min_free(0);
    let settings = Settings::new().block_len(1 << 16).retries(1);
    let cache = ObjectCache::open(PathBuf::from(folder), &options, settings).expect("a cache");
    let read = cache.object_blocking(&address).and_then(|object| {
        let mut all = vec![0; object.object().len() as usize];
        object.read_at(0, &mut all)?;
        Ok(all)
    });
    match read {
        Ok(all) => std::io::stderr().write_all(&all).expect("the parent reads"),
        Err(error) => println!("\nfailed {} {error}", error.code()),
    }
    let counts = cache.counts();
    println!("\ncache {} origin {}", counts.from_cache, counts.from_origin);
}

#[test]
fn objects_of_a_bucket_are_read_and_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let moto = Moto::start(folder.path());
    let kept = folder.path().join("cache");
    let body = random::bytes(1, 1_000_003);
    moto.request("PUT", "/bucket", b"");
    moto.request("PUT", "/bucket/some%20folder/a%2Bb", &body);
    let address = "s3://bucket/some folder/a+b";
    for (cache, origin) in [(0, body.len()), (body.len(), 0)] {
        let (text, found) = read(&moto, &kept, address);
        assert!(found == body, "other bytes: {text}");
        assert!(text.contains(&format!("cache {cache} origin {origin}")), "{text}");
    }
    let newer: Vec<u8> = body.iter().map(|byte| byte ^ 1).collect();
    moto.request("PUT", "/bucket/some%20folder/a%2Bb", &newer);
    let (text, found) = read(&moto, &kept, address);
    assert!(found == newer, "other bytes: {text}");

    moto.request("PUT", "/bucket/empty", b"");
    let (text, found) = read(&moto, &kept, "s3://bucket/empty");
    assert!(found.is_empty() && !text.contains("\nfailed"), "{text}");
    for nothing in ["s3://bucket/nothing", "s3://no-bucket/nothing"] {
        let (text, _) = read(&moto, &kept, nothing);
        assert!(text.contains("failed not-found"), "{text}");
    }
    for entry in std::fs::read_dir(&kept).expect("the cache") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("a file");
        assert!(!bytes.windows(7).any(|window| window == b"a5ecret"), "a secret in a file");
    }
}
