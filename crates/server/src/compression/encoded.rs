//! A value in the form in which it is stored.

use super::codec::keep_buffer;

/// A value in the form in which it is stored: raw or compressed.
#[derive(Debug)]
pub(crate) struct EncodedValue<'v> {
    form: Form<'v>,
}

#[derive(Debug)]
enum Form<'v> {
    Raw(&'v [u8]),
    /// The compressed value is the end of the buffer of the thread, from this offset on.
    Compressed(Vec<u8>, usize),
}

impl<'v> EncodedValue<'v> {
    /// Creates a raw value.
    #[inline]
    pub(super) fn raw(value: &'v [u8]) -> Self {
        Self { form: Form::Raw(value) }
    }

    /// Creates a compressed value: the last `len` bytes of `buffer`.
    #[inline]
    pub(super) fn compressed(buffer: Vec<u8>, len: usize) -> Self {
        let start = buffer.len() - len;
        Self { form: Form::Compressed(buffer, start) }
    }

    /// Returns the bytes to store.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.form {
            Form::Raw(value) => value,
            Form::Compressed(buffer, start) => &buffer[*start..],
        }
    }

    /// Returns whether the bytes are a compressed value.
    #[inline]
    pub(crate) fn is_compressed(&self) -> bool {
        matches!(self.form, Form::Compressed(..))
    }
}

impl Drop for EncodedValue<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Form::Compressed(buffer, _) = &mut self.form {
            keep_buffer(std::mem::take(buffer));
        }
    }
}
