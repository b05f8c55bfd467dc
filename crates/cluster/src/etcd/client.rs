//! The client: endpoints, logins, and one attempt for each request.

use super::diagnosis::{OtherCluster, diagnose, requires_login};
use super::login::{Access, Login, Token};
use super::options::{EtcdError, EtcdOptions};
use super::problem::{Diagnosis, EtcdProblem, EtcdReport, Operation};
use super::problem_log::ProblemLog;
use super::proto::ResponseHeader;
use super::tls::Security;
use crate::request::Failure;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// A client of etcd.
///
/// It uses one endpoint until a request there fails, then the next one. A request that may have
/// reached etcd is not repeated: its outcome is unknown, and the caller decides.
#[derive(Debug)]
pub struct Etcd {
    /// Replaced as a whole by [`apply`](Self::apply).
    endpoints: Mutex<Arc<Endpoints>>,
    /// The number of the endpoint in use, which grows with every failure.
    current: AtomicUsize,
    /// The identifier of the cluster of etcd; 0 before the first response.
    cluster_id: AtomicU64,
    problems: ProblemLog,
}

/// The endpoints of a client, and its login there.
#[derive(Debug)]
struct Endpoints {
    /// Each as `host:port`.
    names: Vec<String>,
    channels: Vec<Channel>,
    security: Security,
    login: Option<Login>,
}

impl Endpoints {
    fn new(options: &EtcdOptions) -> Result<Arc<Self>, EtcdError> {
        let (names, channels) = (options.endpoints().to_vec(), options.channels()?);
        let login = options.credentials.clone().map(Login::new);
        Ok(Arc::new(Self { names, channels, security: options.security(), login }))
    }
}

/// Other options of the same endpoints, for [`Etcd::apply`].
#[derive(Debug)]
pub struct EtcdReload(Arc<Endpoints>);

impl EtcdReload {
    /// Checks options. To be called within the Tokio runtime of the requests.
    ///
    /// # Errors
    ///
    /// Fails if the options for TLS are invalid.
    pub fn new(options: &EtcdOptions) -> Result<Self, EtcdError> {
        Endpoints::new(options).map(Self)
    }
}

/// The endpoint that a request is sent to.
#[derive(Clone, Debug)]
pub(super) struct Target {
    number: usize,
    endpoints: Arc<Endpoints>,
}

impl Target {
    pub(super) fn channel(&self) -> Channel {
        self.endpoints.channels[self.number % self.endpoints.channels.len()].clone()
    }

    fn name(&self) -> &str {
        &self.endpoints.names[self.number % self.endpoints.names.len()]
    }

    /// Returns whether a refused request may succeed after another login. If so, its token is
    /// forgotten.
    fn has_forgotten_token(&self, status: &Status, token: Option<&Token>) -> bool {
        // Without a token, a client certificate may name another user.
        let is_without_token = token.is_none() && status.code() == Code::PermissionDenied;
        let is_refused = requires_login(status) || is_without_token;
        if is_refused && self.endpoints.login.is_some() {
            self.forget_token(token);
            return true;
        }
        false
    }

    /// Forgets a token that etcd has refused, unless there is a newer one.
    pub(super) fn forget_token(&self, token: Option<&Token>) {
        if let Some(login) = &self.endpoints.login {
            login.forget(token);
        }
    }
}

/// A request that etcd did not execute.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) request: Operation,
    pub(super) status: Status,
}

/// A response, with the header that all of etcd's responses have.
pub(super) trait Response {
    fn header(&self) -> Option<&ResponseHeader>;
}

impl Etcd {
    /// Creates a client. It connects with the first request, within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the options for TLS are invalid.
    pub fn new(options: &EtcdOptions) -> Result<Self, EtcdError> {
        Self::with_reports(options, |_| {})
    }

    /// Creates a client as [`new`](Self::new) does. It passes the begin and the end of each problem
    /// to `report`, which must not block.
    ///
    /// # Errors
    ///
    /// Fails if the options for TLS are invalid.
    pub fn with_reports(
        options: &EtcdOptions,
        report: impl Fn(EtcdReport) + Send + Sync + 'static,
    ) -> Result<Self, EtcdError> {
        Ok(Self {
            endpoints: Mutex::new(Endpoints::new(options)?),
            current: AtomicUsize::new(0),
            cluster_id: AtomicU64::new(0),
            problems: ProblemLog::new(Box::new(report)),
        })
    }

    /// Uses other certificates, another user or another password from now on. Requests and watches
    /// in progress keep theirs.
    pub fn apply(&self, reload: EtcdReload) {
        let has_login = reload.0.login.is_some();
        *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner) = reload.0;
        self.problems.reloaded(has_login);
    }

    /// Returns the problems that have begun and not ended.
    pub fn problems(&self) -> Vec<EtcdProblem> {
        self.problems.current()
    }

    /// Returns the endpoint in use.
    pub(super) fn target(&self) -> Target {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        Target { number: self.current.load(Ordering::Relaxed), endpoints: Arc::clone(&endpoints) }
    }

    /// Changes to the next endpoint, unless that has happened already.
    pub(super) fn change_endpoint(&self, failed: &Target) {
        let next = failed.number.wrapping_add(1);
        let order = Ordering::Relaxed;
        let _ = self.current.compare_exchange(failed.number, next, order, order);
    }

    /// Makes a call within a deadline. A call that etcd refuses for its token is repeated once with
    /// a new one.
    pub(super) async fn call<T, F>(
        &self,
        request: Operation,
        deadline: Duration,
        call: impl Fn(Channel, Option<Token>) -> F,
    ) -> Result<T, Failure>
    where
        T: Response,
        F: Future<Output = Result<T, Status>>,
    {
        let target = self.target();
        let attempts = async {
            let token = self.token(&target).await?;
            let result = match call(target.channel(), token.clone()).await {
                Err(status) if target.has_forgotten_token(&status, token.as_ref()) => {
                    call(target.channel(), self.token(&target).await?).await
                }
                result => result,
            };
            let checked = result.and_then(|response| {
                self.check_cluster(response.header())?;
                Ok(response)
            });
            checked.map_err(|status| Failed { request, status })
        };
        let result = tokio::time::timeout(deadline, attempts).await.unwrap_or_else(|_| {
            let status = Status::deadline_exceeded(format!("no response within {deadline:?}"));
            Err(Failed { request, status })
        });
        match result {
            Ok(response) => {
                self.note_success(&target, request);
                Ok(response)
            }
            Err(failed) => {
                self.note_failure(&target, &failed);
                Err(failure(&failed.status, target.endpoints.security))
            }
        }
    }

    /// Notes that an endpoint has executed a request.
    pub(super) fn note_success(&self, target: &Target, request: Operation) {
        self.problems.succeeded(target.name(), request);
    }

    /// Notes a failed request, and changes the endpoint if that may be the cause.
    pub(super) fn note_failure(&self, target: &Target, failed: &Failed) {
        let Failed { request, status } = failed;
        let is_refusal = matches!(
            status.code(),
            Code::InvalidArgument | Code::NotFound | Code::PermissionDenied | Code::OutOfRange
        );
        // The lease has expired: that is no problem of etcd.
        if is_lease_absent(status) {
            return self.note_success(target, *request);
        }
        let Diagnosis { kind, found, advice } = diagnose(status, target.endpoints.security);
        let (endpoint, request) = (target.name().to_owned(), *request);
        let problem = EtcdProblem { kind, endpoint, request, found, advice };
        self.problems.failed(problem, Instant::now());
        if !is_refusal && !kind.is_of_all_endpoints() {
            self.change_endpoint(target);
        }
    }

    /// Returns the token for calls; `None` without credentials, or if etcd has no users.
    pub(super) async fn token(&self, target: &Target) -> Result<Option<Token>, Failed> {
        let Some(login) = &target.endpoints.login else { return Ok(None) };
        let failed = |status| Failed { request: Operation::Login, status };
        let access = login.access(&target.channel()).await.map_err(failed)?;
        match &access {
            Access::Known(_) => {}
            Access::New(_) => self.note_success(target, Operation::Login),
            Access::Disabled(status) => self.note_failure(target, &failed(status.clone())),
        }
        Ok(access.token())
    }

    /// Checks that a response is of the same cluster of etcd as the first one. Two clusters would
    /// have two owners of a slot.
    pub(super) fn check_cluster(&self, header: Option<&ResponseHeader>) -> Result<(), Status> {
        let found = header.map_or(0, |header| header.cluster_id);
        if found == 0 {
            return Ok(());
        }
        let order = Ordering::Relaxed;
        match self.cluster_id.compare_exchange(0, found, order, order) {
            Err(expected) if expected != found => {
                Err(Status::from_error(Box::new(OtherCluster { expected, found })))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a request with its token. A member of etcd without a leader refuses it at once.
pub(super) fn with_token<T>(message: T, token: Option<Token>) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    if let Some(token) = token {
        request.metadata_mut().insert("token", token);
    }
    request
}

fn is_lease_absent(status: &Status) -> bool {
    status.code() == Code::NotFound && status.message().contains("lease not found")
}

fn failure(status: &Status, security: Security) -> Failure {
    if is_lease_absent(status) {
        return Failure::LeaseAbsent;
    }
    let text = format!("etcd: {}: {}", status.code(), status.message());
    let is_away = diagnose(status, security).kind.is_away() || status.code() == Code::Unavailable;
    if is_away { Failure::Unknown(text) } else { Failure::Refused(text) }
}
