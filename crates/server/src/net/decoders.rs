//! What a connection needs of the decoder of its protocol.

use crate::protocol::Protocol;
use crate::state::{Server, Session, Version};

/// Decodes the requests of a connection, whichever protocol it speaks.
pub(crate) trait Decoders: Clone {
    /// What a protocol remembers of a connection.
    type Session: Session;

    /// Returns a decoder at the start of a request. If the client is not trusted, it must log in
    /// first, and the limits allow no more than a login needs.
    fn new(protocol: Protocol, server: &Server, trusted: bool) -> Self;

    fn protocol(&self) -> Protocol;

    /// Returns the offset and length of the value that an incomplete request is still waiting for,
    /// if the protocol announces its length and the decoder supports [`elide`](Self::elide).
    fn pending_value(&self) -> Option<(usize, usize)>;

    /// Continues without the bytes of that value, which is received elsewhere.
    fn elide(&mut self);

    /// Raises the limits to those of a client that has logged in.
    fn trust(&mut self, server: &Server);

    /// Returns the bytes of memory that the decoder keeps for an incomplete request.
    fn held_len(&self) -> usize;

    /// Appends this error, if the protocol has such replies.
    fn reply_error(&self, out: &mut Vec<u8>, version: Version, text: &str);
}

/// Provides the decoder of one protocol.
pub(crate) trait Decodes<D> {
    fn decoder(&mut self) -> Option<&mut D>;
}
