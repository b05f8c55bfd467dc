//! Certificates, and connections to the TLS listeners of a cache.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::sync::Arc;

/// A certificate for `localhost`, its key and its issuer, in PEM.
pub(crate) struct Certificate {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) issuer: String,
}

impl Certificate {
    /// Creates a certificate with its own issuer.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        let issuer = issuer.expect("an issuer");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let cert = params.signed_by(&key, &issuer).expect("a certificate");
        Self { cert: cert.pem(), key: key.serialize_pem(), issuer: issuer.pem() }
    }
}

/// Returns a TLS connection over `stream` that trusts this issuer alone. The handshake is made with
/// the first bytes.
pub(crate) fn client(stream: TcpStream, issuer: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let issuer = CertificateDer::from_pem_slice(issuer).expect("PEM");
    roots.add(issuer).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("TLS");
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = ClientConnection::new(Arc::new(config), name).expect("a session");
    StreamOwned::new(tls, stream)
}
