//! Bodies of responses: their bytes are charged to the limit of memory until they are sent.

use crate::server::budget::{Budget, Charge};
use crate::server::metrics::CountedCall;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use nuthatch_listen::OpenCall;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;

/// The body of a response.
pub(super) struct ResponseBody {
    body: Body,
    budget: Arc<Budget>,
    counted: CountedCall,
    _open: OpenCall,
}

/// Bytes with their charge.
struct Held {
    bytes: Bytes,
    #[expect(dead_code, reason = "held until the bytes are gone")]
    charge: Charge,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ResponseBody {
    pub(super) fn new(
        body: Body,
        budget: Arc<Budget>,
        counted: CountedCall,
        open: OpenCall,
    ) -> Self {
        Self { body, budget, counted, _open: open }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(trailers) = frame.trailers_ref()
        {
            this.counted.note_headers(trailers);
        }
        polled.map_ok(|frame| {
            frame.map_data(|bytes| {
                this.counted.count_sent(bytes.len());
                let charge = this.budget.hold(bytes.len() as u64);
                Bytes::from_owner(Held { bytes, charge })
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
