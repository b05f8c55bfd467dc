//! Origins with TLS: only certificates of trusted issuers are accepted.

use crate::server::noise;
use crate::{BLOCK, Place, quick};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

const ADDRESS: &str = "NUTHATCH_TEST_SECURE";

fn body() -> Vec<u8> {
    noise(3 * BLOCK as usize, 1)
}

/// The child process. It trusts the certificates that the environment names.
#[test]
fn child_of_a_secure_origin() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let place = Place::new(quick());
    let read = place.cache.object_blocking(&address).and_then(|object| {
        let mut all = body();
        all.fill(0);
        object.read_at(0, &mut all).map(|_| all == body())
    });
    match read {
        Ok(right) => println!("\nread {right}"),
        Err(error) => println!("\nfailed {} {error}", error.code()),
    }
}

/// Serves the body over TLS, one connection at a time. Returns the port.
fn serve(config: ServerConfig) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).expect("a session");
            let stream = StreamOwned::new(connection, stream.expect("a connection"));
            let mut reader = BufReader::new(stream);
            let mut range = None;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|len| len > 0) {
                let lower = line.to_ascii_lowercase();
                if let Some(found) = lower.trim().strip_prefix("range: bytes=") {
                    let (first, last) = found.split_once('-').expect("a range");
                    let end = last.parse::<usize>().expect("a number") + 1;
                    range = Some(first.parse::<usize>().expect("a number")..end);
                }
                line.clear();
                let Some(range) = range.take_if(|_| lower.trim().is_empty()) else { continue };
                let (body, last) = (body(), range.end - 1);
                let (len, all) = (range.len(), body.len());
                let head = format!(
                    "HTTP/1.1 206 Partial\r\nContent-Range: bytes {}-{last}/{all}\r\n\
                     ETag: \"one\"\r\nContent-Length: {len}\r\n\r\n",
                    range.start
                );
                let stream = reader.get_mut();
                stream.write_all(head.as_bytes()).expect("a head");
                stream.write_all(&body[range]).expect("a body");
                stream.flush().expect("all of it");
            }
        }
    });
    port
}

#[test]
fn certificates_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, cert.pem()).expect("a file");
    let untrusted = folder.path().join("untrusted.pem");
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    std::fs::write(&untrusted, other.expect("a certificate").cert.pem()).expect("a file");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a configuration");
    let address = format!("https://localhost:{}/a", serve(config));
    let one_attempt = "failed unreachable";
    for (certificates, expected) in [(&trusted, "read true"), (&untrusted, one_attempt)] {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "secure::child_of_a_secure_origin", "--nocapture"])
            .env(ADDRESS, &address)
            .env("SSL_CERT_FILE", certificates)
            .output()
            .expect("the child");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(expected), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(!text.contains("attempts"), "a retry: {text}");
    }
}
