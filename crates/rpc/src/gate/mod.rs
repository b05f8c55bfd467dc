//! What every call passes on its way in and out: its token is looked at, its deadline noted, and
//! its bytes are counted and held against the limit of memory.

mod deadline;
mod incoming;
mod outgoing;

use crate::access::{self, Hash, Right, Tokens};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::figures::{Figures, Method};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response};
use incoming::Incoming;
use nuthatch_listen::{Activity, DrainSignal};
use outgoing::Outgoing;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::{Code, Status};
use tower_layer::Layer;
use tower_service::Service;

/// What all calls share.
pub(crate) struct Rules {
    pub(crate) tokens: watch::Receiver<Option<Tokens>>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) message_bytes: usize,
    pub(crate) figures: Arc<Figures>,
    pub(crate) drain: DrainSignal,
}

/// What a call's handler must know besides its request.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) deadline: Option<Instant>,
    pub(crate) drain: DrainSignal,
    permit: Permit,
}

/// What a caller may do, as long as its token says so.
#[derive(Clone)]
struct Permit {
    right: Right,
    /// The token that was shown, where one is needed.
    token: Option<(Hash, watch::Receiver<Option<Tokens>>)>,
}

impl Permit {
    /// Waits until the token is gone, or allows less than it did.
    async fn revoked(self) -> Error {
        let Some((hash, mut tokens)) = self.token else { return std::future::pending().await };
        loop {
            let right = tokens.borrow_and_update().as_ref().and_then(|all| all.right(&hash));
            match right {
                None => return unknown(),
                Some(right) if right < self.right => return forbidden(),
                Some(_) => {}
            }
            if tokens.changed().await.is_err() {
                // Nothing can change any more.
                return std::future::pending().await;
            }
        }
    }
}

impl Call {
    /// Whether the caller may write.
    pub(crate) fn check_write(&self) -> Result<()> {
        if self.permit.right == Right::Write { Ok(()) } else { Err(forbidden()) }
    }

    /// Waits until the call must end: its deadline has passed, its token was revoked, or the server
    /// has waited for long enough.
    pub(crate) async fn over(self) -> Error {
        let Self { deadline, drain, permit } = self;
        tokio::select! {
            () = until(deadline) => Error::deadline(),
            () = drain.ended() => Error::draining(),
            error = permit.revoked() => error,
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
        Gated { inner, rules: Arc::clone(&self.0), activity: Arc::default() }
    }
}

/// A service behind the gate.
#[derive(Clone)]
pub(crate) struct Gated<S> {
    inner: S,
    rules: Arc<Rules>,
    /// Of the connection that the calls come from.
    activity: Arc<Activity>,
}

impl<S: Clone> Gated<S> {
    /// Returns the service for the calls of a connection.
    pub(crate) fn for_connection(&self, activity: &Arc<Activity>) -> Self {
        Self { activity: Arc::clone(activity), ..self.clone() }
    }
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
        let (rules, open) = (Arc::clone(&self.rules), self.activity.begin_call());
        let method = Method::of(request.uri().path());
        let mut counted = rules.figures.begin(method);
        let permit = match rules.admit(method, request.headers()) {
            Ok(permit) => permit,
            Err(error) => {
                counted.ended(Code::from_i32(error.status()));
                return Box::pin(std::future::ready(Ok(refusal(error))));
            }
        };
        let deadline = deadline::of(request.headers()).map(|time| Instant::now() + time);
        request.extensions_mut().insert(Call { deadline, drain: rules.drain.clone(), permit });
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
            Ok(answer.map(|body| Body::new(Outgoing::new(body, budget, counted, open))))
        })
    }
}

impl Rules {
    /// What the caller may do, if that is enough for the call.
    fn admit(&self, method: Method, headers: &HeaderMap) -> Result<Permit> {
        let tokens = self.tokens.borrow();
        let (Some(tokens), Some(needed)) = (&*tokens, method.right()) else {
            return Ok(Permit { right: Right::Write, token: None });
        };
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = given.and_then(|value| value.split_at_checked("Bearer ".len()));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        let hash = token.map(|(_, token)| access::hash(token));
        let known = hash.and_then(|hash| Some((hash, tokens.right(&hash)?)));
        match (known, given) {
            (Some((hash, right)), _) if right >= needed => {
                Ok(Permit { right, token: Some((hash, self.tokens.clone())) })
            }
            (Some(_), _) => Err(forbidden()),
            (None, Some(_)) => Err(unknown()),
            (None, None) => {
                let message = "expected a token, as `authorization: Bearer TOKEN`, found none";
                Err(Error::new(Code::Unauthenticated, "unauthenticated", message))
            }
        }
    }
}

fn unknown() -> Error {
    let message = "expected a token that the server knows, found another one";
    Error::new(Code::Unauthenticated, "unauthenticated", message)
}

fn forbidden() -> Error {
    let message = "expected a token that allows writing, found one for reading";
    Error::new(Code::PermissionDenied, "forbidden", message)
}

/// An answer that is nothing but an error.
fn refusal(error: Error) -> Response<Body> {
    Status::from(error).into_http()
}
