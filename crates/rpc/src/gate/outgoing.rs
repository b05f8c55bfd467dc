//! Bytes of answers: held against the limit of memory until the network has taken them.

use crate::budget::{Budget, Charge};
use crate::figures::Counted;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use nuthatch_listen::OpenCall;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;

/// The body of an answer.
pub(super) struct Outgoing {
    body: Body,
    budget: Arc<Budget>,
    counted: Counted,
    _open: OpenCall,
}

/// Bytes with what holds them.
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

impl Outgoing {
    pub(super) fn new(body: Body, budget: Arc<Budget>, counted: Counted, open: OpenCall) -> Self {
        Self { body, budget, counted, _open: open }
    }
}

impl HttpBody for Outgoing {
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
            this.counted.began(trailers);
        }
        polled.map_ok(|frame| {
            frame.map_data(|bytes| {
                this.counted.sent(bytes.len());
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
