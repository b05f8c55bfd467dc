//! The certificate of the gRPC server and the credentials of its clients, which SIGHUP reloads.

use crate::arguments::{AdminReloader, read_tokens, server_tls};
use crate::outcome::Failure;
use nuthatch_rpc::{Reloader, ServerTls, Tokens};
use std::path::PathBuf;
use tracing::error;

/// The files with the server's certificate and the credentials of clients. SIGHUP reloads them.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    /// The certificate, its key, and the CA certificates for clients.
    pub(crate) tls: Option<(PathBuf, PathBuf, Option<PathBuf>)>,
    pub(crate) tokens: Option<String>,
}

impl Credentials {
    pub(crate) fn read(&self) -> Result<(Option<ServerTls>, Option<Tokens>), Failure> {
        let tls = self.tls.as_ref();
        let tls = tls.map(|(cert, key, ca)| server_tls(cert, key, ca.as_deref())).transpose()?;
        let tokens = self.tokens.as_deref().map(read_tokens).transpose()?;
        Ok((tls, tokens))
    }

    /// Reloads the files, that of the admin endpoint included, and replaces the server's
    /// credentials. On an error nothing is replaced.
    fn reload(&self, reloader: &Reloader, admin: &AdminReloader) -> Result<(), Failure> {
        let ((tls, tokens), rules) = (self.read()?, admin.read()?);
        let outcome = reloader.reload(tls, tokens);
        outcome.map_err(|error| Failure::Error(error.to_string()))?;
        admin.apply(rules);
        Ok(())
    }

    /// Reloads the files. On an error the server keeps its credentials, and the error is logged.
    pub(super) fn reload_or_log(&self, reloader: &Reloader, admin: &AdminReloader) {
        if let Err(problem) = self.reload(reloader, admin).map_err(Failure::into_message) {
            let text = "reload failed; the previous credentials stay in use";
            error!(target: "nuthatch::rpc", %problem, "{text}");
        }
    }
}
