//! What stores answer, as it passes by: their library tells errors as text, with the answers of
//! servers in it; here only the status and the time to wait are kept.

use super::response;
use crate::lock::lock;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The last answer to a request that carries this among its extensions.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Option<Answered>>>);

/// A status, and how long the origin wants to be left alone.
type Answered = (u16, Option<Duration>);

impl Heard {
    /// The status, and how long the origin wants to be left alone.
    pub(super) fn get(&self) -> Option<Answered> {
        *lock(&self.0)
    }

    fn set(&self, heard: Option<Answered>) {
        *lock(&self.0) = heard;
    }
}

/// Makes clients that listen.
#[derive(Debug)]
pub(super) struct Listening;

impl HttpConnector for Listening {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Listener(client)))
    }
}

#[derive(Debug)]
struct Listener(HttpClient);

/// What the trait answers with, written out.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for Listener {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> Answer<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let heard = request.extensions().get::<Heard>().cloned().unwrap_or_default();
            heard.set(None);
            let response = self.0.execute(request).await?;
            let after = response::retry_after(response.headers());
            heard.set(Some((response.status().as_u16(), after)));
            Ok(response)
        })
    }
}
