//! The middleware of all calls: checks the token, applies the deadline, and charges the bytes of
//! messages to the limit of memory.

mod call;
mod deadline;
mod request_body;
mod response_body;

pub(crate) use call::{CallContext, until};

use crate::error::{Error, Result};
use crate::server::budget::Budget;
use crate::server::methods::Method;
use crate::server::metrics::CallCounters;
use crate::server::tokens::{Right, Tokens};
use call::{Permit, forbidden, unknown};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response};
use nuthatch_listen::{Activity, DrainSignal, SecretHash};
use nuthatch_trace_context::Instrument;
use request_body::RequestBody;
use response_body::ResponseBody;
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

/// The rules for all calls.
pub(crate) struct CallPolicy {
    pub(crate) tokens: watch::Receiver<Option<Tokens>>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) message_bytes: usize,
    pub(crate) counters: Arc<CallCounters>,
    pub(crate) drain: DrainSignal,
}

/// The layer that adds the middleware to a service.
#[derive(Clone)]
pub(crate) struct CallLayer(Arc<CallPolicy>);

impl CallLayer {
    pub(crate) fn new(policy: CallPolicy) -> Self {
        Self(Arc::new(policy))
    }
}

impl<S> Layer<S> for CallLayer {
    type Service = CallMiddleware<S>;

    fn layer(&self, inner: S) -> CallMiddleware<S> {
        CallMiddleware { inner, policy: Arc::clone(&self.0), activity: Arc::default() }
    }
}

/// A service with the middleware in front of it.
#[derive(Clone)]
pub(crate) struct CallMiddleware<S> {
    inner: S,
    policy: Arc<CallPolicy>,
    /// The activity of the connection of the calls.
    activity: Arc<Activity>,
}

impl<S: Clone> CallMiddleware<S> {
    /// Returns the service for the calls of a connection.
    pub(crate) fn for_connection(&self, activity: &Arc<Activity>) -> Self {
        Self { activity: Arc::clone(activity), ..self.clone() }
    }
}

impl<S> Service<Request<Body>> for CallMiddleware<S>
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
        let (policy, open) = (Arc::clone(&self.policy), self.activity.begin_call());
        let method = Method::of(request.uri().path());
        let mut counted = policy.counters.begin(method);
        let span = counted.begin_span(request.headers());
        let permit = match policy.admit(method, request.headers()) {
            Ok(permit) => permit,
            Err(error) => {
                counted.note_status(Code::from_i32(error.status()));
                return Box::pin(std::future::ready(Ok(refusal(error))));
            }
        };
        let deadline = deadline::of(request.headers()).map(|time| Instant::now() + time);
        request.extensions_mut().insert(CallContext {
            deadline,
            drain: policy.drain.clone(),
            permit,
        });
        let incoming = |body| {
            Body::new(RequestBody::new(body, Arc::clone(&policy.budget), policy.message_bytes))
        };
        let response = span.in_scope(|| self.inner.call(request.map(incoming)));
        let response = response.instrument(span);
        Box::pin(async move {
            let response = match deadline {
                None => Ok(response.await),
                Some(deadline) => timeout_at(deadline, response).await,
            };
            let Ok(response) = response else {
                counted.note_status(Code::DeadlineExceeded);
                return Ok(refusal(Error::deadline()));
            };
            let response = response?;
            counted.note_headers(response.headers());
            let budget = Arc::clone(&policy.budget);
            Ok(response.map(|body| Body::new(ResponseBody::new(body, budget, counted, open))))
        })
    }
}

impl CallPolicy {
    /// Returns the right of the caller, if it suffices for the method.
    fn admit(&self, method: Method, headers: &HeaderMap) -> Result<Permit> {
        let tokens = self.tokens.borrow();
        let (Some(tokens), Some(needed)) = (&*tokens, method.right()) else {
            return Ok(Permit { right: Right::Write, token: None });
        };
        let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = header.and_then(|value| value.split_at_checked("Bearer ".len()));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        let hash = token.map(|(_, token)| SecretHash::of(token));
        let known = hash.and_then(|hash| Some((hash, tokens.right(&hash)?)));
        match (known, header) {
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

/// Returns a response that is an error.
fn refusal(error: Error) -> Response<Body> {
    Status::from(error).into_http()
}
