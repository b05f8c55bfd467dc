//! Memory of the caller: where pointers become slices and answers are written. This file holds
//! unsafe code. It believes what the header asks of callers: a pointer is null, or leads to as
//! many elements as its length says, which nobody else writes during the call.

use crate::error::{Failure, PANIC, Result, nuthatch_error};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The word of a caller that its pointers are what the header says. Only [`call`] makes one.
pub(crate) struct Caller<'c>(PhantomData<&'c ()>);

/// A place where an answer goes, if the caller wants it.
pub(crate) struct Out<'c, T>(Option<&'c mut T>);

/// How far long work is: done, and all that is to be done.
pub type nuthatch_progress = Option<unsafe extern "C" fn(user: *mut c_void, done: u64, all: u64)>;

/// Does the work of a function of the header. Answers 0, or the code of what went wrong, which is
/// told through `error`; panics end here.
///
/// # Safety
///
/// All pointers that `act` makes something of by its [`Caller`], and `error`, are what the header
/// says.
pub(crate) unsafe fn call(
    error: *mut nuthatch_error,
    act: impl FnOnce(&Caller<'_>) -> Result<()>,
) -> i32 {
    let caller = Caller(PhantomData);
    let done = catch_unwind(AssertUnwindSafe(|| act(&caller))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Failure::Own(PANIC, format!("a bug of Nuthatch: {text}")))
    });
    match done {
        Ok(()) => 0,
        Err(failure) => {
            failure.tell(&mut caller.maybe_out(error));
            failure.code()
        }
    }
}

#[expect(clippy::unused_self, reason = "its being there is what the unsafe blocks rest on")]
impl<'c> Caller<'c> {
    /// Bytes of the caller.
    pub(crate) fn bytes(&self, name: &str, at: *const u8, len: usize) -> Result<&'c [u8]> {
        self.list(name, at, len)
    }

    /// A text of the caller.
    pub(crate) fn text(&self, name: &str, at: *const u8, len: usize) -> Result<&'c str> {
        let bytes = self.bytes(name, at, len)?;
        std::str::from_utf8(bytes).map_err(|_| Failure::argument(name, "UTF-8", "other bytes"))
    }

    /// Things of the caller.
    pub(crate) fn list<T>(&self, name: &str, at: *const T, len: usize) -> Result<&'c [T]> {
        if len == 0 {
            return Ok(&[]);
        }
        check(name, at, len)?;
        // SAFETY: the caller's word is behind `self`; null, unaligned and too long was refused.
        Ok(unsafe { std::slice::from_raw_parts(at, len) })
    }

    /// Room of the caller, which has some value already.
    pub(crate) fn room<T: Copy>(&self, name: &str, at: *mut T, len: usize) -> Result<&'c mut [T]> {
        if len == 0 {
            return Ok(&mut []);
        }
        check(name, at, len)?;
        // SAFETY: as above, and nobody else uses it during the call.
        Ok(unsafe { std::slice::from_raw_parts_mut(at, len) })
    }

    /// Something of the caller.
    pub(crate) fn one<T>(&self, name: &str, at: *const T) -> Result<&'c T> {
        self.list(name, at, 1)?.first().ok_or_else(|| null(name))
    }

    /// Something of the caller, or null.
    pub(crate) fn maybe<T>(&self, name: &str, at: *const T) -> Result<Option<&'c T>> {
        if at.is_null() { Ok(None) } else { self.one(name, at).map(Some) }
    }

    /// Where an answer goes. Null is refused.
    pub(crate) fn out<T>(&self, name: &str, at: *mut T) -> Result<Out<'c, T>> {
        check(name, at, 1)?;
        Ok(self.maybe_out(at))
    }

    /// Where an answer goes, unless it is null.
    pub(crate) fn maybe_out<T>(&self, at: *mut T) -> Out<'c, T> {
        if !at.is_aligned() {
            return Out(None);
        }
        // SAFETY: the caller's word is behind `self`: it is null, or leads to room for one.
        Out(unsafe { at.as_mut() })
    }

    /// The caller's function that is told how far work is.
    pub(crate) fn progress(
        &self,
        function: nuthatch_progress,
        user: *mut c_void,
    ) -> impl FnMut(u64, u64) {
        move |done, all| {
            if let Some(function) = function {
                // SAFETY: the caller's word is behind `self`: the function takes what it is given.
                unsafe { function(user, done, all) }
            }
        }
    }
}

impl<'c, T> Out<'c, T> {
    /// A place that is known.
    pub(crate) fn of(place: &'c mut T) -> Self {
        Self(Some(place))
    }

    pub(crate) fn put(&mut self, answer: T) {
        if let Some(place) = &mut self.0 {
            **place = answer;
        }
    }
}

fn check<T>(name: &str, at: *const T, len: usize) -> Result<()> {
    if at.is_null() {
        return Err(null(name));
    }
    if !at.is_aligned() {
        return Err(Failure::argument(name, "an aligned address", format!("{at:p}")));
    }
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Failure::argument(name, "a length that there can be", len)),
    }
}

#[cold]
fn null(name: &str) -> Failure {
    Failure::argument(name, "an address", "null")
}

/// Addresses of rows and changes that lie in something beside them.
pub(crate) struct Lent<T>(pub(crate) Vec<T>);

// SAFETY: the addresses are handed to C and never used here; what they lead to is kept beside them
// and can be let go of by any thread.
unsafe impl<T> Send for Lent<T> {}
