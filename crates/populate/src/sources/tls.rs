//! Encryption of connections to databases.

use crate::error::{Error, Result};
use crate::interruption::{InterruptibleFile, Interruption};
use crate::job::{Source, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::io::BufReader;
use std::net::Ipv4Addr;
use std::sync::Arc;
use url::{Host, Url};

/// Returns how connections are encrypted: as the job says, else as `sslmode` of the address says,
/// else verified, unless the host is this machine.
pub(super) fn mode(source: &Source, url: &Url) -> Result<Tls> {
    if let Some(tls) = source.tls {
        return Ok(tls);
    }
    let named = url.query_pairs().find(|(name, _)| name == "sslmode" || name == "ssl-mode");
    match named.as_ref().map(|(_, value)| value.to_ascii_lowercase()).as_deref() {
        Some("disable" | "disabled") => Ok(Tls::Off),
        Some("require" | "required" | "prefer" | "preferred" | "allow") => Ok(Tls::Unverified),
        Some("verify-ca" | "verify-full" | "verify_ca" | "verify_identity") => Ok(Tls::Verify),
        Some(value) => Err(Error::Job(format!(
            "source {}: sslmode: expected disable, require or verify-full, found {value}",
            source.number
        ))),
        None if is_this_machine(url) => Ok(Tls::Off),
        None => Ok(Tls::Verify),
    }
}

/// Returns whether the host of an address is this machine, or a socket in its file system.
fn is_this_machine(url: &Url) -> bool {
    // Addresses of IPv4 are names in schemes that the library of URLs does not know.
    let is_loopback = |name: &str| name.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback());
    match url.host() {
        None => true,
        Some(Host::Domain(name)) => {
            name == "localhost" || name.to_ascii_lowercase().starts_with("%2f") || is_loopback(name)
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    }
}

/// Returns the certificates of the authorities that the job and the system trust.
fn authorities(
    source: &Source,
    interruption: &Interruption,
) -> Result<Vec<CertificateDer<'static>>> {
    let mut certificates = rustls_native_certs::load_native_certs().certs;
    if let Some(path) = &source.ca_file {
        let wrong = |error: String| {
            Error::Job(format!("source {}: ca_file: {}: {error}", source.number, path.display()))
        };
        let file = InterruptibleFile::open(path, interruption);
        let file = file.map_err(|error| wrong(error.to_string()))?;
        let before = certificates.len();
        for certificate in CertificateDer::pem_reader_iter(BufReader::new(file)) {
            let invalid = |error: pem::Error| match error {
                pem::Error::Io(error) => wrong(error.to_string()),
                _ => wrong("expected certificates in PEM, found a damaged one".to_owned()),
            };
            certificates.push(certificate.map_err(invalid)?);
        }
        if certificates.len() == before {
            return Err(wrong("expected certificates in PEM, found none".to_owned()));
        }
    }
    Ok(certificates)
}

/// Returns the certificates in DER, for libraries with a TLS configuration of their own.
pub(super) fn authorities_in_der(
    source: &Source,
    interruption: &Interruption,
) -> Result<Vec<Vec<u8>>> {
    Ok(authorities(source, interruption)?
        .into_iter()
        .map(|certificate| certificate.to_vec())
        .collect())
}

/// Returns the configuration of a client.
pub(super) fn client(
    source: &Source,
    tls: Tls,
    interruption: &Interruption,
) -> Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::System(format!("TLS: {error}")))?;
    if tls == Tls::Unverified {
        let verifier = Arc::new(NoVerification(provider));
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        return Ok(builder.with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities(source, interruption)?);
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// A verifier that accepts any certificate, for `tls = "unverified"`.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_encryption() {
        for (address, expected) in [
            ("postgresql://u@127.0.0.1:5432/d", true),
            ("postgresql://u@[::1]/d", true),
            ("mysql://u@localhost/d", true),
            ("postgresql:///d", true),
            ("postgresql://u@%2Frun%2Fpostgresql/d", true),
            ("postgresql://u@db.internal/d", false),
            ("mysql://u@10.0.0.1/d", false),
            ("postgresql://u@[2001:db8::1]/d", false),
        ] {
            let url = Url::parse(address).expect(address);
            assert_eq!(is_this_machine(&url), expected, "{address}");
        }
    }
}
