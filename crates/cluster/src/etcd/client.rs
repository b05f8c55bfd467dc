//! The client: endpoints, tokens, and one attempt for each request.

use super::options::{EtcdError, EtcdOptions};
use super::proto::AuthenticateRequest;
use super::proto::auth_client::AuthClient;
use crate::request::Failure;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// A client of etcd.
///
/// It uses one endpoint until a request there fails, then the next one. A request that may have
/// reached etcd is not repeated: its outcome is unknown, and the caller decides.
#[derive(Debug)]
pub struct Etcd {
    channels: Vec<Channel>,
    /// The number of the endpoint in use, which grows with every failure.
    current: AtomicUsize,
    options: EtcdOptions,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

impl Etcd {
    /// Creates a client. It connects with the first request, within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the options for TLS are invalid.
    pub fn new(options: EtcdOptions) -> Result<Self, EtcdError> {
        let channels = options.channels()?;
        Ok(Self { channels, current: AtomicUsize::new(0), options, token: Mutex::new(None) })
    }

    /// Returns the endpoint in use, and its number.
    pub(super) fn channel(&self) -> (usize, Channel) {
        let number = self.current.load(Ordering::Relaxed);
        (number, self.channels[number % self.channels.len()].clone())
    }

    /// Changes to the next endpoint, unless that has happened already.
    pub(super) fn change_endpoint(&self, failed: usize) {
        let next = failed.wrapping_add(1);
        let _ = self.current.compare_exchange(failed, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes a call within a deadline. A call that etcd refuses for its token is repeated once with
    /// a new one.
    pub(super) async fn call<T, F>(
        &self,
        deadline: Duration,
        call: impl Fn(Channel, Option<MetadataValue<Ascii>>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let (number, channel) = self.channel();
        let attempts = async {
            let token = self.token(&channel).await?;
            match call(channel.clone(), token).await {
                Err(status) if self.is_token_invalid(&status) => {
                    self.set_token(None);
                    call(channel.clone(), self.token(&channel).await?).await
                }
                result => result,
            }
        };
        let result = tokio::time::timeout(deadline, attempts).await;
        let status = match result {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded(format!("no response within {deadline:?}")),
        };
        self.note_failure(number, &status);
        Err(failure(&status))
    }

    /// Changes the endpoint if a failure may be caused by it.
    pub(super) fn note_failure(&self, number: usize, status: &Status) {
        let is_refusal = matches!(
            status.code(),
            Code::InvalidArgument | Code::NotFound | Code::PermissionDenied | Code::OutOfRange
        );
        if !is_refusal {
            self.change_endpoint(number);
        }
    }

    /// Returns the token for calls; `None` without credentials.
    pub(super) async fn token(
        &self,
        channel: &Channel,
    ) -> Result<Option<MetadataValue<Ascii>>, Status> {
        let Some(credentials) = &self.options.credentials else { return Ok(None) };
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return Ok(known);
        }
        let request = AuthenticateRequest {
            name: credentials.user.clone(),
            password: credentials.password.clone(),
        };
        let response = AuthClient::new(channel.clone()).authenticate(Request::new(request)).await?;
        let token = response.into_inner().token.parse();
        let mut token: MetadataValue<Ascii> =
            token.map_err(|_| Status::internal("etcd has sent a token with other characters"))?;
        token.set_sensitive(true);
        self.set_token(Some(token.clone()));
        Ok(Some(token))
    }

    fn set_token(&self, token: Option<MetadataValue<Ascii>>) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    pub(super) fn is_token_invalid(&self, status: &Status) -> bool {
        self.options.credentials.is_some() && status.code() == Code::Unauthenticated
    }

    /// Forgets a token that etcd has refused.
    pub(super) fn forget_token(&self) {
        self.set_token(None);
    }
}

/// Returns a request with its token.
pub(super) fn with_token<T>(message: T, token: Option<MetadataValue<Ascii>>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        request.metadata_mut().insert("token", token);
    }
    request
}

fn failure(status: &Status) -> Failure {
    if status.code() == Code::NotFound && status.message().contains("lease not found") {
        return Failure::LeaseAbsent;
    }
    Failure::Unknown(format!("etcd: {}: {}", status.code(), status.message()))
}
