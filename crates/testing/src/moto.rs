//! Moto's server: another implementation of S3, in a Python environment that the test creates.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Moto's server. Dropping it ends the process.
#[derive(Debug)]
pub struct Moto {
    process: Child,
    host: String,
}

impl Moto {
    /// Starts a server at any free port. Its log is written to the folder.
    ///
    /// # Panics
    ///
    /// If it cannot be installed or started.
    #[must_use]
    pub fn start(folder: &Path) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        // In the target folder of this program.
        let program = std::env::current_exe().expect("this program");
        let target = program.ancestors().nth(3).expect("the target folder");
        let environment = target.join("moto");
        let made = Command::new(root.join("scripts/venv"))
            .arg(&environment)
            .arg(root.join("crates/testing/moto/requirements.txt"))
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

    /// Sets the environment of a program that uses the server. The secret is `a5ecret`.
    pub fn configure(&self, program: &mut Command) {
        program
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.host))
            .env("AWS_ACCESS_KEY_ID", "id")
            .env("AWS_SECRET_ACCESS_KEY", "a5ecret")
            .env("AWS_REGION", "us-east-1");
    }

    /// Sends a request with all permissions, which must succeed. Returns the body of the response.
    ///
    /// # Panics
    ///
    /// If the request fails.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        self.request_with((method, path), "", body)
    }

    /// Moves an object into an archive, as a lifecycle rule does: it is listed, and reads of it
    /// fail.
    ///
    /// # Panics
    ///
    /// If there is no such object.
    pub fn archive(&self, path: &str) {
        let bytes = self.request("GET", path, b"");
        self.request_with(("PUT", path), "x-amz-storage-class: GLACIER\r\n", &bytes);
    }

    fn request_with(&self, (method, path): (&str, &str), headers: &str, body: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.host).expect("moto");
        let signed = "AWS4-HMAC-SHA256 Credential=id/20200101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";
        let (host, len) = (&self.host, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {signed}\r\n\
             Content-Length: {len}\r\n{headers}Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("a request");
        stream.write_all(body).expect("a body");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("a response");
        let end = response.windows(4).position(|window| window == b"\r\n\r\n");
        let (head, body) = response.split_at(end.expect("the end of the headers") + 4);
        let head = String::from_utf8_lossy(head);
        assert!(head.starts_with("HTTP/1.1 20"), "{method} {path}: {head}");
        body.to_vec()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
