//! Outcomes that must not be lost on their way: a future can be cancelled when its work is done
//! already.

/// An outcome, and what becomes of it when nobody takes it.
pub(crate) struct Undelivered<T>(Option<(T, Lost<T>)>);

type Lost<T> = Box<dyn FnOnce(T) + Send>;

impl<T> Undelivered<T> {
    pub(crate) fn new(outcome: T, lost: impl FnOnce(T) + Send + 'static) -> Self {
        Self(Some((outcome, Box::new(lost))))
    }

    /// The outcome, for whoever wanted it. It is there once.
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
