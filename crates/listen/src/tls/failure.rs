//! Why a connection of a client with TLS failed.

use rustls::{AlertDescription, Error as TlsFailure};
use std::error::Error;
use std::io;

/// Alerts of a server that refuses the certificate of a client, or requires one.
pub const CLIENT_ALERTS: [AlertDescription; 6] = [
    AlertDescription::CertificateRequired,
    AlertDescription::UnknownCA,
    AlertDescription::BadCertificate,
    AlertDescription::CertificateUnknown,
    AlertDescription::CertificateExpired,
    AlertDescription::DecryptError,
];

/// Returns an error and its causes. An error within an [`io::Error`] is one of them.
pub fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(within) => Some(within),
        None => error.source(),
    }
}

/// Returns the alert of [`CLIENT_ALERTS`] with which a server ended an established connection.
///
/// With TLS 1.3 the server checks the client's certificate after the client has finished its part
/// of the handshake. So the alert arrives during HTTP/2, which keeps only the text of the error.
pub fn client_alert(error: &(dyn Error + 'static)) -> Option<AlertDescription> {
    let text = error.to_string();
    CLIENT_ALERTS
        .into_iter()
        .find(|alert| text.ends_with(&TlsFailure::AlertReceived(*alert).to_string()))
}
