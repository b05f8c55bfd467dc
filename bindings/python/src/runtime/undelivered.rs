//! Results that must not be lost: a future can be cancelled after its work is done.

/// A result with a closure that receives it if it is dropped before the delivery.
pub(crate) struct Undelivered<T>(Option<(T, Lost<T>)>);

type Lost<T> = Box<dyn FnOnce(T) + Send>;

impl<T> Undelivered<T> {
    pub(crate) fn new(outcome: T, lost: impl FnOnce(T) + Send + 'static) -> Self {
        Self(Some((outcome, Box::new(lost))))
    }

    /// Returns the result and disarms the closure.
    pub(crate) fn deliver(mut self) -> Option<T> {
        self.0.take().map(|(outcome, _)| outcome)
    }
}

impl<T> Drop for Undelivered<T> {
    fn drop(&mut self) {
        if let Some((outcome, lost)) = self.0.take() {
            lost(outcome);
        }
    }
}
