//! What every call passes on its way in and out: its token is looked at, its deadline noted, and
//! its bytes are counted and held against the limit of memory.

mod deadline;
mod incoming;
mod outgoing;

use crate::access::{Right, Tokens};
use crate::budget::Budget;
use crate::drain::Drain;
use crate::error::{Error, Result};
use crate::figures::{Figures, Method};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response};
use incoming::Incoming;
use outgoing::Outgoing;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::{Code, Status};
use tower_layer::Layer;
use tower_service::Service;

/// What all calls share.
pub(crate) struct Rules {
    pub(crate) tokens: Option<Tokens>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) message_bytes: usize,
    pub(crate) figures: Arc<Figures>,
    pub(crate) drain: Drain,
}

/// What a call's handler must know besides its request.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) deadline: Option<Instant>,
    pub(crate) drain: Drain,
    /// What the caller may do.
    right: Right,
}

impl Call {
    /// Whether the caller may write.
    pub(crate) fn check_write(&self) -> Result<()> {
        if self.right == Right::Write { Ok(()) } else { Err(forbidden()) }
    }

    /// Waits until the call must end: its deadline has passed, or the server has waited for long
    /// enough.
    pub(crate) async fn over(self) -> Error {
        let Self { deadline, drain, .. } = self;
        tokio::select! {
            () = until(deadline) => Error::deadline(),
            () = drain.ended() => Error::draining(),
        }
    }
}

/// Waits until then; for ever where there is no such time.
pub(crate) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[derive(Clone)]
pub(crate) struct Gate(Arc<Rules>);

impl Gate {
    pub(crate) fn new(rules: Rules) -> Self {
        Self(Arc::new(rules))
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, rules: Arc::clone(&self.0) }
    }
}

/// A service behind the gate.
#[derive(Clone)]
pub(crate) struct Gated<S> {
    inner: S,
    rules: Arc<Rules>,
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let rules = Arc::clone(&self.rules);
        let method = Method::of(request.uri().path());
        let mut counted = rules.figures.begin(method);
        let right = match rules.admit(method, request.headers()) {
            Ok(right) => right,
            Err(error) => {
                counted.ended(Code::from_i32(error.status()));
                return Box::pin(std::future::ready(Ok(refusal(error))));
            }
        };
        let deadline = deadline::of(request.headers()).map(|time| Instant::now() + time);
        request.extensions_mut().insert(Call { deadline, drain: rules.drain.clone(), right });
        let incoming =
            |body| Body::new(Incoming::new(body, Arc::clone(&rules.budget), rules.message_bytes));
        let answer = self.inner.call(request.map(incoming));
        Box::pin(async move {
            let answer = match deadline {
                None => Ok(answer.await),
                Some(deadline) => timeout_at(deadline, answer).await,
            };
            let Ok(answer) = answer else {
                counted.ended(Code::DeadlineExceeded);
                return Ok(refusal(Error::deadline()));
            };
            let answer = answer?;
            counted.began(answer.headers());
            let budget = Arc::clone(&rules.budget);
            Ok(answer.map(|body| Body::new(Outgoing::new(body, budget, counted))))
        })
    }
}

impl Rules {
    /// What the caller may do, if that is enough for the call.
    fn admit(&self, method: Method, headers: &HeaderMap) -> Result<Right> {
        let (Some(tokens), Some(needed)) = (&self.tokens, method.right()) else {
            return Ok(Right::Write);
        };
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = given.and_then(|value| value.split_at_checked("Bearer ".len()));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        let right = token.and_then(|(_, token)| tokens.right(token));
        let message = match (right, given) {
            (Some(right), _) if right >= needed => return Ok(right),
            (Some(_), _) => return Err(forbidden()),
            (None, Some(_)) => "expected a token that the server knows, found another one",
            (None, None) => "expected a token, as `authorization: Bearer TOKEN`, found none",
        };
        Err(Error::new(Code::Unauthenticated, "unauthenticated", message))
    }
}

fn forbidden() -> Error {
    let message = "expected a token that allows writing, found one for reading";
    Error::new(Code::PermissionDenied, "forbidden", message)
}

/// An answer that is nothing but an error.
fn refusal(error: Error) -> Response<Body> {
    Status::from(error).into_http()
}
