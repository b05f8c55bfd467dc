//! Finds out why a connection to etcd could not be established, or was lost.

use super::problem::{Diagnosis, ProblemKind};
use super::tls::Security;
use nuthatch_listen::tls::{CLIENT_ALERTS, causes, client_alert};
use rustls::{AlertDescription, CertificateError, Error as TlsFailure};
use std::error::Error;
use std::io::{self, ErrorKind};
use tonic::ConnectError;

const CHECK_TLS: &str =
    "check that etcd has TLS at this endpoint; if not, begin the URL with etcd://";

/// Texts of HTTP/2 errors for a peer that speaks another protocol.
const NOT_HTTP2: [&str; 2] = ["frame with invalid size", "HTTP/2 was not negotiated"];

/// Returns why a connection could not be established, or was lost.
pub(super) fn diagnose(error: &(dyn Error + 'static), security: Security) -> Diagnosis {
    if let Some(failure) = causes(error).find_map(|cause| cause.downcast_ref()) {
        return tls(failure);
    }
    if let Some(alert) = causes(error).find_map(client_alert) {
        return tls(&TlsFailure::AlertReceived(alert));
    }
    let last = causes(error).last().map(ToString::to_string).unwrap_or_default();
    if causes(error).any(|cause| NOT_HTTP2.iter().any(|text| cause.to_string().contains(text))) {
        let advice = "name an endpoint for clients of etcd, with etcds:// if it has TLS";
        let found = format!("expected HTTP/2, found another protocol: {last}");
        return Diagnosis::new(ProblemKind::NotEtcd, found, advice);
    }
    let is_connecting = causes(error).any(<dyn Error + 'static>::is::<ConnectError>);
    if is_connecting && security != Security::None && causes(error).any(is_cut) {
        let found = format!("the endpoint has ended the TLS handshake: {last}");
        return Diagnosis::new(ProblemKind::Tls, found, CHECK_TLS);
    }
    if is_connecting {
        let advice = "check that etcd listens there, and that this machine can reach it";
        let found = format!("no connection: {last}");
        return Diagnosis::new(ProblemKind::Unreachable, found, advice);
    }
    // A server ends a connection without a reason that the client always sees.
    let advice = match security {
        Security::None => "check that etcd runs there; if it has TLS, begin the URL with etcds://",
        Security::Tls => {
            "check that etcd runs there; if it requires a client certificate \
             (--client-cert-auth), name one in etcd-cert"
        }
        Security::ClientCertificate => {
            "check that etcd runs there, and that its --trusted-ca-file has the issuer of the \
             client certificate in etcd-cert"
        }
    };
    let found = format!("the connection has ended: {last}");
    Diagnosis::new(ProblemKind::Disconnected, found, advice)
}

/// Returns whether the peer has ended the connection.
fn is_cut(error: &(dyn Error + 'static)) -> bool {
    let error: Option<&io::Error> = error.downcast_ref();
    error.is_some_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        )
    })
}

fn tls(failure: &TlsFailure) -> Diagnosis {
    use CertificateError as Certificate;
    let (found, advice) = match failure {
        TlsFailure::InvalidCertificate(problem) => match problem {
            // A signature by another issuer of the same name is invalid.
            Certificate::UnknownIssuer | Certificate::BadSignature => (
                "the certificate of etcd has an issuer that is not trusted".to_owned(),
                "name a PEM file with the certificate of the issuer in etcd-ca",
            ),
            Certificate::Expired | Certificate::ExpiredContext { .. } => (
                "the certificate of etcd has expired".to_owned(),
                "renew it, or set the clock of this machine",
            ),
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => (
                "the certificate of etcd is not valid yet".to_owned(),
                "check the clocks of this machine and of the issuer",
            ),
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => (
                "the certificate of etcd is for another name than that of the endpoint".to_owned(),
                "name the endpoint as in the certificate, or add this name to the certificate",
            ),
            problem => {
                (format!("the certificate of etcd is refused: {problem}"), "replace it by another")
            }
        },
        TlsFailure::AlertReceived(AlertDescription::CertificateRequired) => (
            "etcd requires a client certificate".to_owned(),
            "name one in etcd-cert, and its key in etcd-key",
        ),
        TlsFailure::AlertReceived(alert) if CLIENT_ALERTS.contains(alert) => (
            format!("etcd refuses the client certificate: {failure}"),
            "name one in etcd-cert and etcd-key that is valid now, and whose issuer is in the \
             --trusted-ca-file of etcd; check the clocks of both machines",
        ),
        TlsFailure::InvalidMessage(_) => ("the endpoint does not speak TLS".to_owned(), CHECK_TLS),
        failure => (failure.to_string(), "read the log of etcd"),
    };
    Diagnosis::new(ProblemKind::Tls, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_of_lost_connections_have_advice() {
        let within = |error: TlsFailure| io::Error::new(ErrorKind::InvalidData, error);
        let issuer = TlsFailure::InvalidCertificate(CertificateError::UnknownIssuer);
        let expired = TlsFailure::InvalidCertificate(CertificateError::Expired);
        for (error, kind, advised) in [
            (within(issuer), ProblemKind::Tls, "in etcd-ca"),
            (within(expired), ProblemKind::Tls, "the clock of this machine"),
            (
                io::Error::other("received fatal alert: CertificateRequired"),
                ProblemKind::Tls,
                "in etcd-cert, and its key",
            ),
            (
                io::Error::other("received fatal alert: UnknownCA"),
                ProblemKind::Tls,
                "the --trusted-ca-file of etcd",
            ),
            (io::Error::other("frame with invalid size"), ProblemKind::NotEtcd, "with etcds://"),
            (ErrorKind::ConnectionReset.into(), ProblemKind::Disconnected, "that etcd runs"),
            (io::Error::other("a\nb"), ProblemKind::Disconnected, "that etcd runs"),
        ] {
            let diagnosis = diagnose(&error, Security::None);
            assert_eq!(diagnosis.kind, kind, "{error}");
            assert!(diagnosis.advice.contains(advised), "{}", diagnosis.advice);
            assert!(!diagnosis.found.contains('\n'), "{}", diagnosis.found);
        }
    }
}
