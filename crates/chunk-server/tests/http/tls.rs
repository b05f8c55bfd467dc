//! TLS, client certificates and the check of addresses.

use crate::origin::noise;
use crate::{BLOCK, Front, options, quick};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Returns the TLS configurations of a server and a client.
fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).expect("a key");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a certificate");
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

#[tokio::test]
async fn objects_are_served_over_tls() {
    let body = noise(10 * BLOCK as usize, 1);
    let (server, client) = configs();
    let front = Front::with(body.clone(), quick(), &options().tls(server));
    let stream = TcpStream::connect(front.server.addresses()[0]).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(client).connect(name, stream).await.expect("TLS");
    let request = b"GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.expect("a connection");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.expect("an answer");
    assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n") && response.ends_with(&body));
    // A client without TLS is disconnected.
    let mut plain = front.client();
    plain.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    assert!(!plain.rest().starts_with(b"HTTP"));
}

/// Regression: it stayed open until its client closed it.
#[tokio::test]
async fn a_connection_whose_certificate_is_no_longer_accepted_is_closed() {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).expect("a key");
    let key = || PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let chain = || vec![cert.der().clone()];
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a certificate");
    let roots = Arc::new(roots);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(chain(), key())
        .expect("a certificate");
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain(), key())
        .expect("a certificate");
    let server = options().tls(Arc::new(server));
    let body = noise(100, 2);
    let accepting = server.clone().client_certificates(Arc::new(|_| true));
    let front = Front::with(body.clone(), quick(), &accepting);
    let stream = TcpStream::connect(front.server.addresses()[0]).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await.expect("TLS");
    let mut responses = Vec::new();
    for _ in 0..2 {
        stream.write_all(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("open");
        while !responses.ends_with(&body) {
            assert_ne!(stream.read_buf(&mut responses).await.expect("an answer"), 0, "open");
        }
        responses.clear();
        front.server.reloader().replace(&accepting).expect("reloaded");
    }
    let refusing = server.clone().client_certificates(Arc::new(|_| false));
    front.server.reloader().replace(&refusing).expect("reloaded");
    // The connection ends, with or without a TLS close.
    let _ = stream.read_to_end(&mut responses).await;
    assert!(responses.is_empty());
    let error = front.server.reloader().replace(&server).expect_err("none are needed");
    assert!(error.to_string().starts_with("certificates of clients cannot be switched on or off"));
}

#[test]
fn addresses_that_other_machines_reach_need_tls_and_a_login() {
    let (server, _) = configs();
    let open = || crate::Options::new(vec![SocketAddr::from(([0, 0, 0, 0], 0))]);
    let guarded = || open().token_check(Arc::new(|_| true));
    let refused = |options: crate::Options| options.problem().expect("a problem");
    assert!(refused(open()).contains("expected TLS, found none"));
    assert!(refused(guarded()).contains("expected TLS, found none"));
    assert!(refused(open().tls(server.clone())).contains("expected tokens"));
    assert_eq!(guarded().tls(server.clone()).problem(), None);
    assert_eq!(open().tls(server).client_certificates(Arc::new(|_| true)).problem(), None);
    assert_eq!(open().insecure(true).problem(), None);
    assert!(refused(crate::Options::new(Vec::new())).contains("an address to listen on"));
}
