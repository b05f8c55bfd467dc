//! The bytes that sends read: values that a ring owns while they are being sent, or parts of bytes
//! that it owns permanently.
//!
//! This file has unsafe code: the promise of [`StableBytes`].

use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A value whose bytes can be sent.
///
/// # Safety
///
/// `bytes` returns the same slice until the value is dropped or modified, also after the value was
/// moved. While a value exists that is not modified, nothing writes to the slice.
pub unsafe trait StableBytes: 'static {
    /// Returns the bytes.
    fn bytes(&self) -> &[u8];
}

// SAFETY: the bytes are on the heap, and only an exclusive reference to the vector modifies them.
unsafe impl StableBytes for Vec<u8> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

// SAFETY: the bytes are on the heap, and nothing modifies them while a second reference to them
// could exist.
unsafe impl StableBytes for Arc<[u8]> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Where the bytes of sends are: [`OwnedSends`] or [`Outbox`].
pub trait SendMemory: sealed::Sealed {
    /// What the completion of a send returns.
    type Sent;

    /// Ends a send. `None` if the connection has none.
    fn end(&mut self, connection: u32) -> Option<Self::Sent>;
}

mod sealed {
    pub trait Sealed {}
}

/// Each send has a value of its own, which its completion returns.
#[derive(Debug)]
pub struct OwnedSends<B> {
    /// Values that are being sent, by connection.
    values: Vec<Option<B>>,
}

impl<B> Default for OwnedSends<B> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<B> sealed::Sealed for OwnedSends<B> {}

impl<B: StableBytes> SendMemory for OwnedSends<B> {
    type Sent = B;

    #[inline]
    fn end(&mut self, connection: u32) -> Option<B> {
        self.values.get_mut(connection as usize)?.take()
    }
}

impl<B: StableBytes> OwnedSends<B> {
    /// Keeps a value until its send ends, and returns its bytes.
    #[inline]
    pub(super) fn begin(&mut self, connection: u32, value: B) -> io::Result<&[u8]> {
        let at = connection as usize;
        if self.values.len() <= at {
            self.values.resize_with(at + 1, || None);
        }
        let place = &mut self.values[at];
        if place.is_some() {
            return Err(already_sending(connection));
        }
        Ok(place.insert(value).bytes())
    }
}

#[cold]
fn already_sending(connection: u32) -> io::Error {
    let message = format!("connection {connection}: expected one send at a time; found a second");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Sends are parts of bytes that never change.
#[derive(Debug)]
pub struct Outbox {
    bytes: Arc<Vec<u8>>,
}

impl Outbox {
    /// Creates an outbox of these bytes.
    pub fn new(bytes: Arc<Vec<u8>>) -> Self {
        Self { bytes }
    }

    /// Returns a part of the bytes.
    #[inline]
    pub(super) fn part(&self, part: Range<usize>) -> &[u8] {
        &self.bytes[part]
    }
}

impl sealed::Sealed for Outbox {}

impl SendMemory for Outbox {
    type Sent = ();

    #[inline]
    fn end(&mut self, _: u32) -> Option<()> {
        Some(())
    }
}
