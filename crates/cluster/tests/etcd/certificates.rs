//! Certificates for servers of etcd and their clients.

use nuthatch_cluster::etcd::EtcdTls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::PathBuf;

/// An issuer, and a certificate for 127.0.0.1 that servers and clients use, as files.
pub(crate) struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        let issuer = issuer.expect("an issuer");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        let cert = params.signed_by(&key, &issuer).expect("a certificate");
        for (name, text) in
            [("ca", issuer.pem()), ("cert", cert.pem()), ("key", key.serialize_pem())]
        {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the arguments of a server that requires client certificates.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let options = [("cert-file", "cert"), ("key-file", "key"), ("trusted-ca-file", "ca")];
        let option = |(option, name)| format!("--{option}={}", self.path(name).display());
        let options = options.into_iter().map(option);
        options.chain(["--client-cert-auth".to_owned()]).collect()
    }

    /// Returns the options of `etcdctl`.
    pub(crate) fn control(&self) -> [String; 3] {
        [("cacert", "ca"), ("cert", "cert"), ("key", "key")]
            .map(|(option, name)| format!("--{option}={}", self.path(name).display()))
    }

    /// Returns the settings of a client that trusts the issuer.
    pub(crate) fn trust(&self) -> EtcdTls {
        EtcdTls::open(&self.path("ca")).expect("a certificate")
    }

    /// Returns the settings of a client with a certificate.
    pub(crate) fn identity(&self) -> EtcdTls {
        let tls = self.trust().identity(&self.path("cert"), &self.path("key"));
        tls.expect("a certificate and its key")
    }
}
