//! The arguments of a request.

use crate::span::Span;
use crate::state::Keys;
use nuthatch_cache::PendingValue;

/// The arguments of a request, with the name of the command first.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
    /// The pending value that contains the elided argument, if there is one.
    pending_value: Option<&'a PendingValue>,
}

impl<'a> Args<'a> {
    /// Creates arguments within these bytes.
    #[inline]
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans, pending_value: None }
    }

    /// Returns the same arguments. If one of them was elided, its bytes are those of this pending
    /// value.
    #[inline]
    pub(crate) fn with_pending_value(self, pending_value: Option<&'a PendingValue>) -> Self {
        Self { pending_value, ..self }
    }

    /// Returns the number of arguments, the name included.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are none, not even a name.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the argument at this index: 0 is the name. Returns no bytes for an index beyond the
    /// last argument.
    #[inline]
    pub fn get(&self, at: usize) -> &'a [u8] {
        self.spans.get(at).map(|span| self.of(*span)).unwrap_or_default()
    }

    #[inline]
    fn of(&self, span: Span) -> &'a [u8] {
        match span.of(self.bytes) {
            Some(argument) => argument,
            None => self.elided(span),
        }
    }

    #[cold]
    fn elided(&self, span: Span) -> &'a [u8] {
        let pending_value = self.pending_value.filter(|_| span.is_elided());
        pending_value.and_then(PendingValue::value).unwrap_or_default()
    }

    /// Returns the arguments from this index on, as if the first of them were the name.
    pub(crate) fn starting_at(&self, at: usize) -> Self {
        Self { spans: self.spans.get(at..).unwrap_or_default(), ..*self }
    }

    /// Returns the bytes of the whole request.
    #[inline]
    pub(crate) fn request_len(&self) -> usize {
        self.bytes.len() + self.pending_value.map_or(0, PendingValue::value_len)
    }

    /// Returns the first argument if it is the only key of a command with these keys. Avoids the
    /// division in [`keys`](Self::keys).
    #[inline]
    pub(crate) fn only_key(&self, keys: Keys) -> Option<&'a [u8]> {
        if keys == Keys::ONE { self.spans.get(1).map(|span| self.of(*span)) } else { None }
    }

    /// Returns the arguments that are keys.
    pub fn keys(&self, keys: Keys) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let last = usize::try_from(keys.last).unwrap_or_else(|_| {
            // With too few arguments this is before the first key, and there are none.
            self.len().saturating_sub(keys.last.unsigned_abs() as usize)
        });
        let count = match keys.step {
            0 => 0,
            step => {
                (last.min(self.len().saturating_sub(1)) + step).saturating_sub(keys.first) / step
            }
        };
        self.from(keys.first).step_by(keys.step.max(1)).take(count)
    }

    /// Returns the arguments from this index on.
    pub fn from(&self, at: usize) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let args = *self;
        self.spans[at.min(self.spans.len())..].iter().map(move |span| args.of(*span))
    }
}
