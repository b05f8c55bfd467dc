//! Describes in one line why a server could not be reached.

use h2::Reason;
use nuthatch_listen::tls::{causes, client_alert};
use rustls::{AlertDescription, CertificateError, Error as TlsFailure};
use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use tonic::ConnectError;

/// The first words of the message for a lost connection.
pub(crate) const LOST: &str = "the connection was lost";

/// Returns the TLS failure among the causes of an error.
pub(crate) fn tls_failure<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e TlsFailure> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// Returns whether an error occurred before the connection was established.
pub(crate) fn is_unconnected(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(<dyn StdError + 'static>::is::<ConnectError>)
}

/// Returns whether a request failed before the server could execute it: there was no connection,
/// the connection had ended, or the server refused further requests on it with GOAWAY.
pub(crate) fn is_unsent(error: &(dyn StdError + 'static)) -> bool {
    is_unconnected(error)
        || causes(error).any(|error| {
            let canceled = error.downcast_ref().is_some_and(hyper::Error::is_canceled);
            let refused = error.downcast_ref().is_some_and(|error: &h2::Error| {
                error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
            });
            canceled || refused
        })
}

/// Returns the reason for a lost or failed connection, and advice if there is any.
pub(crate) fn reason(error: &(dyn StdError + 'static)) -> String {
    if let Some(tls) = tls_failure(error) {
        return tls_reason(tls);
    }
    if let Some(alert) = causes(error).find_map(client_alert) {
        return tls_reason(&TlsFailure::AlertReceived(alert));
    }
    let kind = causes(error).find_map(io_kind);
    if kind == Some(ErrorKind::ConnectionRefused) {
        return "could not connect: connection refused; is the server running?".to_owned();
    }
    if causes(error).any(is_not_http2) {
        return format!("{LOST}: what the server sent is not HTTP/2");
    }
    if kind.is_some_and(is_loss) || causes(error).any(is_cut) {
        return format!("{LOST}; was the server stopped?");
    }
    let summary = if is_unconnected(error) { "could not connect" } else { LOST };
    let cause = causes(error).last().map(ToString::to_string).unwrap_or_default();
    format!("{summary}: {}", cause.replace(['\r', '\n'], " "))
}

/// Returns whether the client could not parse a frame of the server.
fn is_not_http2(error: &(dyn StdError + 'static)) -> bool {
    let error: Option<&h2::Error> = error.downcast_ref();
    error
        .is_some_and(|error| !error.is_remote() && error.reason() == Some(Reason::FRAME_SIZE_ERROR))
}

/// Returns whether the connection ended in the middle of a frame. The frame reader reports this
/// only as text, without an I/O error kind.
fn is_cut(error: &(dyn StdError + 'static)) -> bool {
    error.to_string().ends_with("bytes remaining on stream")
}

/// Returns the kind of an I/O error, which an HTTP/2 error may contain.
fn io_kind(error: &(dyn StdError + 'static)) -> Option<ErrorKind> {
    let within = error.downcast_ref().and_then(h2::Error::get_io);
    error.downcast_ref().or(within).map(io::Error::kind)
}

/// Returns whether an established connection ended.
fn is_loss(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof
    )
}

fn tls_reason(error: &TlsFailure) -> String {
    use CertificateError as Certificate;
    let refused = "the server's certificate was refused";
    match error {
        TlsFailure::InvalidCertificate(problem) => match problem {
            // A signature by another issuer of the same name is invalid.
            Certificate::UnknownIssuer | Certificate::BadSignature => {
                format!("{refused}: its issuer is not trusted")
            }
            Certificate::Expired | Certificate::ExpiredContext { .. } => {
                format!(
                    "{refused}: it has expired; renew it at the server, or set the clock of \
                     this machine"
                )
            }
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                format!(
                    "{refused}: it is not valid yet; check the clocks of this machine and of its \
                     issuer"
                )
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                format!("{refused}: it is for another name than that of the address")
            }
            problem => format!("{refused}: {}", certificate_reason(problem)),
        },
        TlsFailure::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a client certificate; name one and its key (--tls-cert and \
             --tls-key, `cert` and `key`)"
                .to_owned()
        }
        TlsFailure::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::DecryptError,
        ) => "the server refused the client's certificate: expected one that is valid now and \
             signed by an issuer that the server trusts"
            .to_owned(),
        TlsFailure::InvalidMessage(_) => {
            "the server does not speak TLS; expected grpc:// as the address".to_owned()
        }
        error => format!("TLS failed: {error}"),
    }
}

/// Returns the problem of a certificate, and advice if there is any.
fn certificate_reason(problem: &CertificateError) -> String {
    // Errors of the verifier itself can be told apart only by their names.
    let name = format!("{problem:?}");
    let known = [
        (
            "CaUsedAsEndEntity",
            "it is the certificate of a CA; expected one for a server, issued by the CA, or \
             self-signed without being a CA (`openssl req -x509 -addext \
             basicConstraints=critical,CA:FALSE`)",
        ),
        (
            "EndEntityUsedAsCa",
            "its issuer is not a CA; expected a chain of CA certificates behind it",
        ),
        (
            "UnsupportedCertVersion",
            "it is an X.509 certificate of version 1 or 2; expected version 3, which has the \
             names that it is for (subjectAltName)",
        ),
        (
            "InvalidPurpose",
            "it is not for servers; expected serverAuth among its extended key usages, or none",
        ),
    ];
    let reason = known.iter().find(|(known, _)| name.contains(known));
    reason.map_or_else(|| problem.to_string(), |(_, reason)| (*reason).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_that_says_what_to_do() {
        let within = |kind, error: TlsFailure| io::Error::new(kind, error);
        let issuer = TlsFailure::InvalidCertificate(CertificateError::UnknownIssuer);
        for (error, expected) in [
            (ErrorKind::ConnectionRefused.into(), "is the server running?"),
            (ErrorKind::ConnectionReset.into(), "the connection was lost; was the server stopped?"),
            (
                io::Error::other("bytes remaining on stream"),
                "the connection was lost; was the server stopped?",
            ),
            (io::Error::other("a\nb"), "the connection was lost: a b"),
            (within(ErrorKind::InvalidData, issuer), "its issuer is not trusted"),
            (
                io::Error::other("received fatal alert: CertificateRequired"),
                "the server requires a client certificate; name one and its key",
            ),
            (io::Error::other("received fatal alert: UnknownCA"), "expected one that is valid now"),
        ] {
            let reason = reason(&error);
            assert!(reason.contains(expected) && !reason.contains('\n'), "{reason}");
        }
    }
}
