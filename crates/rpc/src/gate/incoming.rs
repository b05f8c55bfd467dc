//! Bytes of requests: each message is held against the limit of memory before it arrives.

use crate::budget::{Budget, Charge};
use crate::error::Error;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;

/// What comes before each message: whether it is compressed, and its length.
const HEAD_LEN: usize = 5;

/// The body of a request.
pub(super) struct Incoming {
    body: Body,
    messages: Messages,
}

/// Follows where messages begin.
struct Messages {
    budget: Arc<Budget>,
    most: usize,
    head: [u8; HEAD_LEN],
    /// Bytes of the head that are there.
    have: usize,
    /// Bytes of the message that are not.
    left: usize,
    /// For the message that is not whole yet, or was the last to be.
    charge: Option<Charge>,
}

impl Incoming {
    pub(super) fn new(body: Body, budget: Arc<Budget>, most: usize) -> Self {
        let messages =
            Messages { budget, most, head: [0; HEAD_LEN], have: 0, left: 0, charge: None };
        Self { body, messages }
    }
}

impl Messages {
    fn follow(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let len = self.left.min(bytes.len());
                self.left -= len;
                bytes = &bytes[len..];
                continue;
            }
            let len = (HEAD_LEN - self.have).min(bytes.len());
            self.head[self.have..self.have + len].copy_from_slice(&bytes[..len]);
            self.have += len;
            bytes = &bytes[len..];
            if self.have == HEAD_LEN {
                let [_, len @ ..] = self.head;
                let len = len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
                (self.have, self.left, self.charge) = (0, len, None);
                if len > self.most {
                    return Err(Error::too_long(len, self.most));
                }
                self.charge = Some(self.budget.charge(len as u64)?);
            }
        }
        Ok(())
    }
}

impl HttpBody for Incoming {
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
            let mut messages = Incoming::new(Body::empty(), Arc::clone(&budget), 300).messages;
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
            let mut messages = Incoming::new(Body::empty(), Arc::clone(&budget), 200).messages;
            messages.follow(&message(len)[..5]).expect_err("no room").code().to_owned()
        };
        assert_eq!(refused(201), "too-long");
        assert_eq!(refused(101), "memory");
        assert_eq!(budget.held(), 0);
    }
}
