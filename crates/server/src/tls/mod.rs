//! TLS, with rustls: the settings of listeners, and the session of one connection.

pub use nuthatch_listen::tls::{TlsError, unreadable};

use crate::output::Outgoing;
use nuthatch_listen::tls::ServerTls;
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::CertificateDer;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// The files of a TLS configuration, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by its chain up to one that clients trust.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// CA certificates for clients. If set, clients must present a certificate that one of them
    /// issued.
    pub client_ca: Option<PathBuf>,
}

/// The TLS settings with which connections begin.
#[derive(Clone, Debug)]
pub struct Tls(ServerTls);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, has other content than expected, or if certificate and key
    /// do not belong together. The error names the file, what was expected and found, and what to
    /// do.
    pub fn open(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { cert, key, client_ca } = files;
        ServerTls::open_with(cert, key, client_ca.as_deref()).map(Self)
    }

    /// Returns whether a client with these certificates may connect: always if clients need no
    /// certificate. `None` stands for a client that has sent none, or none yet.
    #[must_use]
    pub fn accepts(&self, certificates: Option<&[CertificateDer<'_>]>) -> bool {
        self.0.accepts(certificates.unwrap_or_default())
    }

    /// Returns when the certificates of the server expire, in seconds since 1970.
    pub(crate) fn expiry(&self) -> Vec<Option<u64>> {
        self.0.expiry()
    }

    /// Creates the session of a new connection.
    pub(crate) fn session(&self) -> io::Result<Session> {
        Session::new(self.0.config())
    }
}

/// Approximate bytes that a session takes: keys, and incomplete records.
pub(crate) const SESSION_LEN: usize = 24 << 10;

/// Maximum bytes of replies that are encrypted at a time, which takes some ten microseconds. The
/// encrypted bytes are sent before more are encrypted. The shorter length applies while connections
/// use much memory, since each client that does not read holds a slice.
const SLICE_LEN: usize = 128 << 10;
const SLICE_LEN_WHEN_SHORT: usize = 16 << 10;

/// The TLS session of one connection.
pub(crate) struct Session {
    tls: ServerConnection,
    /// Whether the closing alert was sent: the client knows that no replies follow.
    sent_close: bool,
    /// Replies that are not completely encrypted.
    plain: VecDeque<Outgoing>,
    /// Encrypted bytes of the first of these replies.
    encrypted: usize,
}

impl Session {
    fn new(config: Arc<ServerConfig>) -> io::Result<Self> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        // `send` limits the bytes of each call, and the connection limits the bytes that wait.
        tls.set_buffer_limit(None);
        Ok(Self { tls, sent_close: false, plain: VecDeque::new(), encrypted: 0 })
    }

    /// Returns the certificates of the client, if it has one and the handshake has ended.
    pub(crate) fn client_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }

    /// Decrypts bytes from the network and appends them to `plain`. Returns `false` if no more
    /// input follows: after the client has closed the session, or after an error. The alert about
    /// an error is part of the bytes that [`send`](Self::send) returns.
    pub(crate) fn receive(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> bool {
        self.receive_all(bytes, plain).unwrap_or(false)
    }

    fn receive_all(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> io::Result<bool> {
        while !bytes.is_empty() {
            self.tls.read_tls(&mut bytes)?;
            let state = self.tls.process_new_packets().map_err(io::Error::other)?;
            let have = plain.len();
            plain.resize(have + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut plain[have..])?;
            if state.peer_has_closed() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether there are bytes to send besides replies that were not taken yet. At the end
    /// of the connection (`ends`) this includes the closing alert.
    pub(crate) fn has_pending(&self, ends: bool) -> bool {
        self.tls.wants_write() || !self.plain.is_empty() || ends && !self.sent_close
    }

    /// Returns the bytes of replies that were taken and are not encrypted yet.
    pub(crate) fn plain_len(&self) -> usize {
        self.plain.iter().map(|plain| plain.bytes().len()).sum::<usize>() - self.encrypted
    }

    /// Returns the bytes of memory of these replies, without items of the cache.
    pub(crate) fn buffered_len(&self) -> usize {
        self.plain.iter().map(Outgoing::buffered_len).sum()
    }

    /// Drops the replies that are not encrypted yet.
    pub(crate) fn clear(&mut self) {
        self.plain.clear();
        self.encrypted = 0;
    }

    /// Takes replies with `take` until they fill a slice, and returns them encrypted, after the
    /// messages of TLS itself. The rest waits for the next call: one call encrypts at most
    /// [`SLICE_LEN`] bytes, or fewer while memory is short, even of a longer reply. `take` returns
    /// `None` if there are no more replies. If `ends` is set, these are the last ones, and the
    /// closing alert follows them, so that the client knows that none is missing.
    pub(crate) fn send(
        &mut self,
        mut take: impl FnMut() -> Option<Outgoing>,
        (ends, short_of_memory): (bool, bool),
    ) -> io::Result<Vec<u8>> {
        let slice_len = if short_of_memory { SLICE_LEN_WHEN_SHORT } else { SLICE_LEN };
        let mut room = slice_len;
        while room > 0 {
            if self.plain.is_empty() {
                let Some(more) = take() else { break };
                self.plain.push_back(more);
            }
            let Some(first) = self.plain.front() else { break };
            let rest = &first.bytes()[self.encrypted..];
            let slice = &rest[..rest.len().min(room)];
            self.tls.writer().write_all(slice)?;
            room -= slice.len();
            self.encrypted += slice.len();
            if self.encrypted == first.bytes().len() {
                self.plain.pop_front();
                self.encrypted = 0;
            }
        }
        if ends && room > 0 && !self.sent_close {
            self.tls.send_close_notify();
            self.sent_close = true;
        }
        let len = slice_len - room;
        let mut out = Vec::with_capacity(len + len / 256 + 64);
        while self.tls.wants_write() {
            self.tls.write_tls(&mut out)?;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts as many bytes before the handshake as after it, although it does not encrypt them.
    #[test]
    fn a_long_answer_is_taken_in_slices() {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
        let mut session = Session::new(Arc::new(config)).expect("a session");
        let mut answers = vec![vec![1; 10], vec![2; 5 * SLICE_LEN]];
        let mut take = || answers.pop().map(Outgoing::Bytes);
        for slice in 1..=5 {
            let out = session.send(&mut take, (true, false)).expect("sent");
            assert!(out.is_empty(), "there are no keys yet");
            assert_eq!(session.plain_len(), (5 - slice) * SLICE_LEN);
            assert!(session.has_pending(false) || slice == 5);
            assert!(!session.sent_close, "an answer is left");
        }
        session.send(&mut take, (false, false)).expect("sent");
        assert_eq!((session.plain_len(), session.buffered_len()), (0, 0));
        assert!(take().is_none());
        let mut answer = Some(Outgoing::Bytes(vec![3; SLICE_LEN]));
        session.send(|| answer.take(), (false, true)).expect("sent");
        assert_eq!(session.plain_len(), SLICE_LEN - SLICE_LEN_WHEN_SHORT);
    }
}
