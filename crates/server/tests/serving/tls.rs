//! Tests TLS, with certificates that each test generates.

use crate::ask_last;
use crate::served::{LOCAL, ask, connect_to, info, start, with_every_io_backend};
use nuthatch_server::{IoBackend, Listener, Options, Protocol, Reload, Running, Tls, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

with_every_io_backend! {
    requests_and_replies_of_all_sizes_pass_through_tls
    a_long_reply_is_encrypted_as_the_client_reads
    unread_encrypted_replies_count_and_fit_into_the_budget
    connections_end_with_close_notify
    input_that_is_not_tls_ends_only_its_connection
    with_a_client_ca_clients_need_a_certificate
    new_connections_use_a_reloaded_certificate_and_others_stay_open
    connections_whose_certificate_is_no_longer_accepted_are_closed
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

struct Certificates {
    folder: tempfile::TempDir,
    issuer: Issuer,
}

fn issuer() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an issuer")
}

/// Returns a certificate and its key, in PEM.
fn certificate(issuer: &Issuer) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let cert = params.signed_by(&key, issuer).expect("a certificate");
    (cert.pem(), key.serialize_pem())
}

impl Certificates {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), issuer: issuer() }
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn files(&self) -> TlsFiles {
        let (cert, key) = certificate(&self.issuer);
        TlsFiles { cert: self.put("cert", &cert), key: self.put("key", &key), client_ca: None }
    }

    /// Creates a client, with or without a certificate.
    fn client(
        &self,
        (server, listener): (&Running, usize),
        own: Option<&Issuer>,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("TLS");
        let builder = builder.with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(issuer) => {
                let (cert, key) = certificate(issuer);
                let cert = CertificateDer::from_pem_slice(cert.as_bytes()).expect("PEM");
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
                builder.with_client_auth_cert(vec![cert], key).expect("a pair")
            }
        };
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a session");
        StreamOwned::new(tls, connect_to(server, listener))
    }
}

/// Starts a server with RESP and memcached's protocols over TLS, then RESP without TLS.
fn serve_tls(io_backend: IoBackend, files: &TlsFiles) -> Running {
    let listener =
        |protocol| Listener::new(protocol, LOCAL.parse().expect("an address")).with_tls();
    let plain = Listener::new(Protocol::Resp, LOCAL.parse().expect("an address"));
    let listeners = vec![listener(Protocol::Resp), listener(Protocol::Memcache), plain];
    let tls = Tls::open(files).expect("good files");
    start(&Options::new(listeners).tls(tls).io_backend(io_backend))
}

fn requests_and_replies_of_all_sizes_pass_through_tls(io_backend: IoBackend) {
    let certificates = Certificates::new();
    let server = serve_tls(io_backend, &certificates.files());
    let mut stream = certificates.client((&server, 0), None);
    ask(&mut stream, b"PING\r\n", b"+PONG\r\n");
    let value = vec![b'v'; 60_000];
    let set = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n", &value[..], b"\r\n"].concat();
    ask(&mut stream, &set, b"+OK\r\n");
    let expected = [b"$60000\r\n", &value[..], b"\r\n"].concat().repeat(50);
    ask(&mut stream, &b"GET k\r\n".repeat(50), &expected);
    let mut other = certificates.client((&server, 1), None);
    ask(&mut other, b"mg k s\r\n", b"HD s60000\r\n");
    // So long that it is received into the cache, from records that hold more than the value.
    let long = vec![b'w'; 5_000_001];
    let set = format!("PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nl\r\n${}\r\n", long.len());
    let set = [set.as_bytes(), &long, b"\r\nSTRLEN l\r\n"].concat();
    let expected = [b"$5000001\r\n", &long[..], b"\r\n"].concat();
    for _ in 0..3 {
        ask(&mut stream, &set, b"+PONG\r\n+OK\r\n:5000001\r\n");
        ask(&mut stream, b"GET l\r\n", &expected);
    }
    // Pieces of records, and of requests.
    other.sock.set_nodelay(true).expect("a socket");
    for byte in b"mg k s\r\n" {
        other.write_all(&[*byte]).expect("sent");
        other.flush().expect("sent");
    }
    ask(&mut other, b"", b"HD s60000\r\n");
}

/// Each client has a slice of encrypted bytes, beside a reply that references an item of the cache.
fn unread_encrypted_replies_count_and_fit_into_the_budget(io_backend: IoBackend) {
    const MIB: u64 = 1 << 20;
    let certificates = Certificates::new();
    let server = serve_tls(io_backend, &certificates.files());
    let mut control = connect_to(&server, 2);
    let set = |key: &str, len: usize| {
        let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${len}\r\n", key.len());
        [head.as_bytes(), &vec![b'v'; len], b"\r\n"].concat()
    };
    ask(&mut control, &set("k", 10 << 20), b"+OK\r\n");
    let clients: Vec<_> = (0..280)
        .map(|_| {
            let mut client = certificates.client((&server, 0), None);
            set_socket_recv_buffer_size(&client.sock, 16 << 10).expect("a socket");
            client.write_all(b"GET k\r\n").expect("sent");
            client.flush().expect("sent");
            client
        })
        .collect();
    let number = |control: &mut TcpStream, name| info(control, name).parse::<u64>().expect(name);
    let held = |control: &mut TcpStream| number(control, "used_memory_connections");
    let counts = (0..100_000).any(|_| held(&mut control) > 28 * MIB);
    assert!(counts, "{} bytes are counted", held(&mut control));
    for number in 0..20 {
        ask(&mut control, &set(&number.to_string(), 100_000), b"+OK\r\n");
    }
    assert!(held(&mut control) < 40 * MIB, "{} bytes are counted", held(&mut control));
    assert!(number(&mut control, "used_memory") <= 64 * MIB);
    // A write may have closed a few connections after the value that all of them read was evicted.
    assert!(number(&mut control, "output_closed_connections") < 28);
    drop(clients);
}

/// Encrypted at once, the replies would use as much memory as all values together.
fn a_long_reply_is_encrypted_as_the_client_reads(io_backend: IoBackend) {
    let certificates = Certificates::new();
    let server = serve_tls(io_backend, &certificates.files());
    let mut control = connect_to(&server, 2);
    let value: Vec<u8> = (0..30_000_000_u32).map(|at| (at / 7) as u8).collect();
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    ask(&mut control, &[set.as_bytes(), &value, b"\r\n"].concat(), b"+OK\r\n");
    let mut streams: Vec<_> = (0..4).map(|_| certificates.client((&server, 0), None)).collect();
    for stream in &mut streams {
        ask(stream, b"PING\r\n", b"+PONG\r\n");
    }
    let held = |control: &mut TcpStream| -> usize {
        info(control, "used_memory_connections").parse().expect("a number")
    };
    let before = held(&mut control);
    for stream in &mut streams {
        ask(stream, b"GET k\r\n", b"$30000000\r\n");
        // The client has not read the rest yet.
        let max = before + (4 << 20);
        let now = held(&mut control);
        assert!(now < max, "{before} bytes, then {now}");
    }
    for stream in &mut streams {
        let mut answer = vec![0; value.len()];
        stream.read_exact(&mut answer).expect("the value");
        assert!(answer == value);
        ask(stream, b"PING\r\n", b"\r\n+PONG\r\n");
    }
}

fn connections_end_with_close_notify(io_backend: IoBackend) {
    let certificates = Certificates::new();
    let server = serve_tls(io_backend, &certificates.files());
    // Without the server's close_notify, reading would fail here.
    let answer =
        ask_last(&mut certificates.client((&server, 0), None), b"PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(answer, r"+PONG\r\n+OK\r\n");
    let mut stream = certificates.client((&server, 0), None);
    stream.write_all(&b"SET k v\r\n".repeat(10_000)).expect("sent");
    stream.conn.send_close_notify();
    stream.flush().expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answers, then the end");
    assert!(answer == b"+OK\r\n".repeat(10_000));
}

fn input_that_is_not_tls_ends_only_its_connection(io_backend: IoBackend) {
    let certificates = Certificates::new();
    let server = serve_tls(io_backend, &certificates.files());
    let mut plain = connect_to(&server, 0);
    plain.write_all(b"*1\r\n$4\r\nPING\r\n").expect("sent");
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).expect("an alert, then the end");
    assert_eq!(answer.first(), Some(&0x15), "an alert: {answer:?}");
    // One client disconnects in the middle of the handshake.
    let mut half = connect_to(&server, 0);
    half.write_all(b"\x16\x03\x01\x02\x00\x01").expect("sent");
    half.shutdown(Shutdown::Both).expect("a socket");
    ask(&mut certificates.client((&server, 0), None), b"PING\r\n", b"+PONG\r\n");
}

fn with_a_client_ca_clients_need_a_certificate(io_backend: IoBackend) {
    let certificates = Certificates::new();
    let clients = issuer();
    let client_ca = Some(certificates.put("clients", &clients.pem()));
    let server = serve_tls(io_backend, &TlsFiles { client_ca, ..certificates.files() });
    ask(&mut certificates.client((&server, 0), Some(&clients)), b"PING\r\n", b"+PONG\r\n");
    for stranger in [None, Some(&certificates.issuer)] {
        let mut stream = certificates.client((&server, 0), stranger);
        let error = stream.write_all(b"PING\r\n").and_then(|()| stream.read_exact(&mut [0; 7]));
        let error = error.expect_err("no answer").to_string();
        assert!(error.contains("alert"), "{error}");
    }
}

fn new_connections_use_a_reloaded_certificate_and_others_stay_open(io_backend: IoBackend) {
    let (before, after) = (Certificates::new(), Certificates::new());
    let server = serve_tls(io_backend, &before.files());
    let mut stays = before.client((&server, 0), None);
    ask(&mut stays, b"PING\r\n", b"+PONG\r\n");
    let mut reload = Reload::default();
    reload.tls = Some(Tls::open(&after.files()).expect("good files"));
    server.reloader().reload(reload).expect("reloaded");
    ask(&mut after.client((&server, 0), None), b"PING\r\n", b"+PONG\r\n");
    ask(&mut stays, b"PING\r\n", b"+PONG\r\n");
    let mut old = before.client((&server, 0), None);
    assert!(old.write_all(b"PING\r\n").and_then(|()| old.flush()).is_err(), "it is unknown");
}

/// Reads one bulk string of RESP.
fn read_bulk(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut len = None;
    while len.is_none_or(|len| bytes.len() < len) {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a reply");
        bytes.extend(byte);
        if len.is_none() && bytes.ends_with(b"\r\n") {
            let head = String::from_utf8_lossy(&bytes[1..bytes.len() - 2]).into_owned();
            len = Some(bytes.len() + head.parse::<usize>().expect("a length") + 2);
        }
    }
    String::from_utf8(bytes).expect("text")
}

fn connections_whose_certificate_is_no_longer_accepted_are_closed(io_backend: IoBackend) {
    let (certificates, other) = (Certificates::new(), Certificates::new());
    let both = certificates.put("both", &(certificates.issuer.pem() + &other.issuer.pem()));
    let files = certificates.files();
    let server = serve_tls(io_backend, &TlsFiles { client_ca: Some(both), ..files.clone() });
    let mut stays = certificates.client((&server, 0), Some(&certificates.issuer));
    let mut closed = certificates.client((&server, 0), Some(&other.issuer));
    for client in [&mut stays, &mut closed] {
        ask(client, b"PING\r\n", b"+PONG\r\n");
    }
    // Its handshake ends after the reload, with the earlier configuration.
    let mut late = connect_to(&server, 0);
    // A connection that is accepted later has the new configuration, and waits for its client.
    let mut lines = String::new();
    while !lines.contains("connected_clients:3") {
        stays.write_all(b"INFO clients\r\n").expect("sent");
        lines = read_bulk(&mut stays);
    }
    let ca = certificates.put("ca", &certificates.issuer.pem());
    let mut reload = Reload::default();
    reload.tls = Some(Tls::open(&TlsFiles { client_ca: Some(ca), ..files }).expect("good files"));
    server.reloader().reload(reload).expect("reloaded");
    let mut rest = Vec::new();
    // The connection ends, with or without close_notify.
    let _ = closed.read_to_end(&mut rest);
    let _ = late.read_to_end(&mut rest);
    assert!(rest.is_empty());
    ask(&mut stays, b"PING\r\n", b"+PONG\r\n");
}

const CHAIN: &str = "expected a certificate chain in PEM (BEGIN CERTIFICATE), ";
const KEY: &str = "expected a private key in PEM (PKCS#8 BEGIN PRIVATE KEY, SEC1 BEGIN EC PRIVATE \
                   KEY or PKCS#1 BEGIN RSA PRIVATE KEY), ";
const ABSENT: &str = "but there is no such file; check the path";
const EMPTY: &str = "found an empty file; write it anew";
const FOLDER: &str = "but it is a folder; name a file in it";
const GARBAGE: &str = "found 7 bytes that are not PEM; name another file";
const DER: &str = "found DER; `openssl x509 -inform der` or `openssl pkey -inform der` converts it";
const SWAPPED: &str = "are certificate and key the wrong way round?";

/// Returns the error for these files.
#[track_caller]
fn refusal(files: &TlsFiles) -> String {
    Tls::open(files).expect_err("wrong files").to_string()
}

#[test]
fn errors_of_tls_files_name_the_file_its_contents_and_the_remedy() {
    let certificates = Certificates::new();
    let good = certificates.files();
    let request = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
    let damaged = "-----BEGIN CERTIFICATE-----\nAA";
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let text = |path: &PathBuf| std::fs::read_to_string(path).expect("a file");
    let swapped =
        [format!("found a certificate; {SWAPPED}"), format!("found a private key; {SWAPPED}")];
    for (name, content, found) in [
        ("absent", None, ABSENT),
        ("empty", Some(""), EMPTY),
        ("garbage", Some("garbage"), GARBAGE),
        ("der", Some("0\u{1}"), DER),
        ("csr", Some(request), "found PEM with CERTIFICATE REQUEST; name another file"),
        (".", None, FOLDER),
        (
            "encrypted",
            Some(encrypted),
            "found an encrypted key; `openssl pkey -in FILE -out PLAIN`",
        ),
    ] {
        let path = match content {
            Some(content) => certificates.put(name, content),
            None => certificates.folder.path().join(name),
        };
        let error = |expected: &str| format!("{}: {expected}{found}", path.display());
        let refused = refusal(&TlsFiles { cert: path.clone(), ..good.clone() });
        assert!(refused.starts_with(&error(CHAIN)), "{refused}");
        let refused = refusal(&TlsFiles { key: path.clone(), ..good.clone() });
        assert!(refused.starts_with(&error(KEY)), "{refused}");
        let refused = refusal(&TlsFiles { client_ca: Some(path.clone()), ..good.clone() });
        assert!(refused.starts_with(&error(CHAIN)), "{refused}");
    }
    let refused = refusal(&TlsFiles { cert: good.key.clone(), ..good.clone() });
    assert_eq!(refused, format!("{}: {CHAIN}{}", good.key.display(), swapped[1]));
    let refused = refusal(&TlsFiles { key: good.cert.clone(), ..good.clone() });
    assert_eq!(refused, format!("{}: {KEY}{}", good.cert.display(), swapped[0]));
    for cut in [damaged, &text(&good.cert)[..200]] {
        let refused = refusal(&TlsFiles { cert: certificates.put("cut", cut), ..good.clone() });
        assert!(refused.contains(&format!("cut: {CHAIN}found damaged PEM (")), "{refused}");
    }
}

#[test]
fn a_key_of_another_certificate_is_an_error_that_names_both() {
    let certificates = Certificates::new();
    let good = certificates.files();
    let other = certificates.put("other", &certificate(&certificates.issuer).1);
    let refused = refusal(&TlsFiles { key: other.clone(), ..good.clone() });
    let expected = format!(
        "{}: expected the private key of {}, found that of another certificate; name the key that \
         the certificate was issued for",
        other.display(),
        good.cert.display()
    );
    assert_eq!(refused, expected);
    // PEM without a certificate.
    let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let wrong = certificates.put("wrong", wrong);
    let refused = refusal(&TlsFiles { cert: wrong.clone(), ..good.clone() });
    let expected = format!("{}: not usable with the key {}: ", wrong.display(), good.key.display());
    assert!(refused.starts_with(&expected), "{refused}");
    let refused = refusal(&TlsFiles { client_ca: Some(wrong.clone()), ..good });
    let expected = format!("{}: expected certificates of issuers, found one", wrong.display());
    assert!(refused.starts_with(&expected), "{refused}");
}

/// Root may read every file: then only the text is checked.
#[test]
fn the_error_of_an_unreadable_file_names_the_user_of_the_process() {
    let certificates = Certificates::new();
    let good = certificates.files();
    std::fs::set_permissions(&good.key, std::fs::Permissions::from_mode(0o000)).expect("a mode");
    let user = rustix::process::geteuid();
    let text = if user.is_root() {
        nuthatch_server::unreadable(&std::io::ErrorKind::PermissionDenied.into())
    } else {
        refusal(&good)
    };
    let expected = format!("user {}, as which this process runs, may not read it (", user.as_raw());
    assert!(text.contains(&expected), "{text}");
    let remedy = "change the owner or the mode of the file and of its folders";
    assert!(text.ends_with(remedy), "{text}");
}

#[test]
fn a_listener_with_tls_needs_certificate_files() {
    let listener = Listener::new(Protocol::Resp, LOCAL.parse().expect("an address")).with_tls();
    let cache = nuthatch_cache::Cache::new(nuthatch_cache::Options::new().memory(16 << 20));
    let cache = Arc::new(cache.expect("a cache"));
    let error = Running::start(cache, &Options::new(vec![listener])).expect_err("no files");
    assert!(error.to_string().contains("certificate"), "{error}");
}
