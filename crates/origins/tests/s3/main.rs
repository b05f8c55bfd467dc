//! Reads from another implementation of S3: moto's server, in a Python environment that the test
//! creates.

use nuthatch_chunks::Options;
use nuthatch_origins::{ObjectCache, Settings};
use nuthatch_testing::random;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The environment variables with the address that the child reads and the folder of its cache.
const ADDRESS: &str = "NUTHATCH_TEST_S3";
const FOLDER: &str = "NUTHATCH_TEST_FOLDER";

/// Moto's server.
struct Moto {
    process: Child,
    host: String,
}

impl Moto {
    fn start(folder: &Path) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        // In the target folder of this program.
        let program = std::env::current_exe().expect("this program");
        let target = program.ancestors().nth(3).expect("the target folder");
        let environment = target.join("moto");
        let made = Command::new(root.join("scripts/venv"))
            .arg(&environment)
            .arg(root.join("crates/origins/tests/s3/requirements.txt"))
            .status();
        assert!(made.expect("scripts/venv").success(), "moto is needed, from PyPI");
        let log = folder.join("moto.log");
        let process = Command::new(environment.join("bin/moto_server"))
            .args(["-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONUNBUFFERED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = process.expect("moto's server");
        let mut lines = BufReader::new(process.stderr.take().expect("its log")).lines();
        let host = loop {
            let line = lines.next().expect("a line that names the port").expect("a line");
            if let Some((_, host)) = line.split_once("Running on http://") {
                break host.trim().to_owned();
            }
        };
        // Reads the rest of the output, so that the server never blocks on a full pipe.
        let mut log = File::create(log).expect("a log");
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = writeln!(log, "{line}");
            }
        });
        Self { process, host }
    }

    /// Sends a request with all permissions, which must succeed.
    fn request(&self, method: &str, path: &str, body: &[u8]) {
        let mut stream = TcpStream::connect(&self.host).expect("moto");
        let signed = "AWS4-HMAC-SHA256 Credential=id/20200101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";
        let (host, len) = (&self.host, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {signed}\r\n\
             Content-Length: {len}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("a request");
        stream.write_all(body).expect("a body");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        assert!(response.starts_with("HTTP/1.1 20"), "{method} {path}: {response}");
    }

    /// Reads an object in a child process. Returns its standard output and the bytes.
    fn read(&self, folder: &Path, address: &str) -> (String, Vec<u8>) {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "child", "--nocapture"])
            .env(ADDRESS, address)
            .env(FOLDER, folder)
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.host))
            .env("AWS_ACCESS_KEY_ID", "id")
            .env("AWS_SECRET_ACCESS_KEY", "a5ecret")
            .env("AWS_REGION", "us-east-1")
            .output();
        let output = child.expect("the child");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !text.contains("5ecret"), "{text}");
        (text, output.stderr)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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
        let (text, read) = moto.read(&kept, address);
        assert!(read == body, "other bytes: {text}");
        assert!(text.contains(&format!("cache {cache} origin {origin}")), "{text}");
    }
    let newer: Vec<u8> = body.iter().map(|byte| byte ^ 1).collect();
    moto.request("PUT", "/bucket/some%20folder/a%2Bb", &newer);
    let (text, read) = moto.read(&kept, address);
    assert!(read == newer, "other bytes: {text}");

    moto.request("PUT", "/bucket/empty", b"");
    let (text, read) = moto.read(&kept, "s3://bucket/empty");
    assert!(read.is_empty() && !text.contains("\nfailed"), "{text}");
    for nothing in ["s3://bucket/nothing", "s3://no-bucket/nothing"] {
        let (text, _) = moto.read(&kept, nothing);
        assert!(text.contains("failed not-found"), "{text}");
    }
    for entry in std::fs::read_dir(&kept).expect("the cache") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("a file");
        assert!(!bytes.windows(7).any(|window| window == b"a5ecret"), "a secret in a file");
    }
}
