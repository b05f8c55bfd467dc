//! The arguments of a request.

use crate::span::Span;
use crate::state::Keys;
use nuthatch_cache::PendingValue;

/// The arguments of a request, the command's name first.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
    /// Where the value of the argument lies that is not in these bytes.
    pending_value: Option<&'a PendingValue>,
}

impl<'a> Args<'a> {
    /// Arguments that lie in these bytes.
    #[inline]
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans, pending_value: None }
    }

    /// Returns the same arguments. The value of one of them may be in this pending value.
    #[inline]
    pub(crate) fn with_pending_value(self, pending_value: Option<&'a PendingValue>) -> Self {
        Self { pending_value, ..self }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none, not even a name.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at this place; empty beyond the last one.
    #[inline]
    pub fn get(&self, at: usize) -> &'a [u8] {
        self.spans.get(at).map(|span| self.of(*span)).unwrap_or_default()
    }

    #[inline]
    fn of(&self, span: Span) -> &'a [u8] {
        match span.of(self.bytes) {
            Some(argument) => argument,
            None => self.elsewhere(span),
        }
    }

    #[cold]
    fn elsewhere(&self, span: Span) -> &'a [u8] {
        let pending_value = self.pending_value.filter(|_| span.is_elsewhere());
        pending_value.and_then(PendingValue::value).unwrap_or_default()
    }

    /// Those from this place on, the first of them as if it were the name.
    pub(crate) fn behind(&self, at: usize) -> Self {
        Self { spans: self.spans.get(at..).unwrap_or_default(), ..*self }
    }

    /// Bytes of the whole request, with what frames it.
    #[inline]
    pub(crate) fn request_len(&self) -> usize {
        self.bytes.len() + self.pending_value.map_or(0, PendingValue::value_len)
    }

    /// Those of the arguments that are keys.
    pub fn keys(&self, keys: Keys) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let last = usize::try_from(keys.last).unwrap_or_else(|_| {
            // Before the first key, if there are too few: then there are none.
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

    /// The arguments from this place on.
    pub fn from(&self, at: usize) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let args = *self;
        self.spans[at.min(self.spans.len())..].iter().map(move |span| args.of(*span))
    }
}
