//! Bodies of requests: each message is charged to the limit of memory before it arrives.

use crate::error::Error;
use crate::server::budget::{Budget, Charge};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;

/// The length of the header of a message: whether it is compressed, and its length.
const HEAD_LEN: usize = 5;

/// The body of a request.
pub(super) struct RequestBody {
    body: Body,
    messages: Messages,
}

/// Finds the beginnings of messages.
struct Messages {
    budget: Arc<Budget>,
    max: usize,
    head: [u8; HEAD_LEN],
    /// Number of received bytes of the header.
    head_received: usize,
    /// Number of bytes of the message that have not arrived.
    message_left: usize,
    /// The charge for the current message.
    charge: Option<Charge>,
}

impl RequestBody {
    pub(super) fn new(body: Body, budget: Arc<Budget>, max: usize) -> Self {
        let messages = Messages {
            budget,
            max,
            head: [0; HEAD_LEN],
            head_received: 0,
            message_left: 0,
            charge: None,
        };
        Self { body, messages }
    }
}

impl Messages {
    fn follow(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            if self.message_left > 0 {
                let len = self.message_left.min(bytes.len());
                self.message_left -= len;
                bytes = &bytes[len..];
                continue;
            }
            let len = (HEAD_LEN - self.head_received).min(bytes.len());
            self.head[self.head_received..self.head_received + len].copy_from_slice(&bytes[..len]);
            self.head_received += len;
            bytes = &bytes[len..];
            if self.head_received == HEAD_LEN {
                let [_, len @ ..] = self.head;
                let len = len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
                (self.head_received, self.message_left, self.charge) = (0, len, None);
                if len > self.max {
                    return Err(Error::too_long(len, self.max));
                }
                self.charge = Some(self.budget.charge(len as u64)?);
            }
        }
        Ok(())
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
            && let Err(error) = this.messages.follow(bytes)
        {
            return Poll::Ready(Some(Err(error.into())));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: usize) -> Vec<u8> {
        [&[0][..], &(len as u32).swap_bytes().to_le_bytes(), &vec![7; len]].concat()
    }

    #[test]
    fn messages_are_held_one_at_a_time_however_their_bytes_come() {
        let bytes = [message(300), message(0), message(9)].concat();
        for step in 1..20 {
            let budget = Budget::new(300);
            let mut messages = RequestBody::new(Body::empty(), Arc::clone(&budget), 300).messages;
            for (at, part) in bytes.chunks(step).enumerate() {
                messages.follow(part).expect("there is room");
                let begun = at * step + part.len();
                let held = if begun < 5 {
                    0
                } else if begun < 310 {
                    300
                } else if begun < 315 {
                    0
                } else {
                    9
                };
                assert_eq!(budget.held(), held, "{begun} bytes in steps of {step}");
            }
            drop(messages);
            assert_eq!(budget.held(), 0);
        }
    }

    #[test]
    fn a_message_without_room_is_refused_at_its_head() {
        let budget = Budget::new(100);
        let refused = |len: usize| {
            let mut messages = RequestBody::new(Body::empty(), Arc::clone(&budget), 200).messages;
            messages.follow(&message(len)[..5]).expect_err("no room").code().to_owned()
        };
        assert_eq!(refused(201), "too-long");
        assert_eq!(refused(101), "memory");
        assert_eq!(budget.held(), 0);
    }
}
