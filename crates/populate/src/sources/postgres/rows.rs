//! A receiver of the messages of a copy.

use crate::sources::{RowReceiver, Stop};

/// The rows of the messages of a copy.
pub(super) trait CopyRows {
    /// Passes the rows that end in a message on.
    ///
    /// # Errors
    ///
    /// Returns [`Stop`] of the receiver, or if the bytes are not of the format.
    fn take(&mut self, message: &[u8], receiver: &mut dyn RowReceiver) -> Result<(), Stop>;

    /// Returns the number of rows, after the last message.
    ///
    /// # Errors
    ///
    /// Returns [`Stop::Fault`] if the end of the rows is missing.
    fn end(&self) -> Result<u64, Stop>;
}
