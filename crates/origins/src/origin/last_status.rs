//! Records the status of responses of object stores. Their library reports errors as text that
//! contains the response of the server; only the status and the delay are recorded here.

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

/// The status of the last response to a request that has this among its extensions.
#[derive(Clone, Debug, Default)]
pub(super) struct LastStatus(Arc<Mutex<Option<StatusAndDelay>>>);

/// A status, and the delay that the origin requests before a retry.
type StatusAndDelay = (u16, Option<Duration>);

impl LastStatus {
    /// Returns the status, and the delay that the origin requests before a retry.
    pub(super) fn get(&self) -> Option<StatusAndDelay> {
        *lock(&self.0)
    }

    fn set(&self, last_status: Option<StatusAndDelay>) {
        *lock(&self.0) = last_status;
    }
}

/// Creates clients that record statuses.
#[derive(Debug)]
pub(super) struct StatusConnector;

impl HttpConnector for StatusConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(StatusClient(client)))
    }
}

#[derive(Debug)]
struct StatusClient(HttpClient);

/// The return type of the trait.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for StatusClient {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> Answer<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let last_status = request.extensions().get::<LastStatus>().cloned().unwrap_or_default();
            last_status.set(None);
            let response = self.0.execute(request).await?;
            let after = response::retry_after(response.headers());
            last_status.set(Some((response.status().as_u16(), after)));
            Ok(response)
        })
    }
}
