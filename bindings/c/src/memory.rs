//! Memory of the caller: turns pointers into slices, and writes output parameters.
//!
//! This file contains unsafe code. It relies on what the header requires of callers: a pointer is
//! null or points to as many elements as its length says, and no other thread writes to them during
//! the call.

use crate::error::{Failure, NUTHATCH_ERROR_PANIC, Result, nuthatch_error};
use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Proof that the caller's pointers are as the header requires. Only [`call`] creates one.
pub(crate) struct Caller<'c>(PhantomData<&'c ()>);

/// An output parameter, or none if the caller passed null.
pub(crate) struct Out<'c, T>(Option<&'c mut T>);

/// Progress callback: what was verified and all that is, in pages of a store or entries of a
/// snapshot. `user` is the pointer that the caller passed.
pub type nuthatch_progress = Option<unsafe extern "C" fn(user: *mut c_void, done: u64, all: u64)>;

/// Bytes or a string.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_snapshot_bytes {
    /// The bytes. Ignored if `len` is 0.
    pub data: *const u8,
    /// Length in bytes.
    pub len: usize,
}

/// Bytes of the caller that were checked. Only [`Caller::byte_lists`] creates one.
#[repr(transparent)]
pub(crate) struct CallerBytes(nuthatch_snapshot_bytes);

impl AsRef<[u8]> for CallerBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        if self.0.len == 0 {
            return &[];
        }
        // SAFETY: `Caller::byte_lists` checked the pointer, and proves that it points to `len`
        // bytes.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.len) }
    }
}

/// The body of an exported function that can fail: `export_body!(error, |caller| { … })`. The block
/// reads the caller's pointers through `caller`, a [`Caller`], and returns [`Result<()>`](Result).
///
/// cbindgen makes the header from signatures in the sources and does not expand macros. So the
/// signature of each function is written out, and this macro is its whole body; a tidy test checks
/// that (`tidy/exports.rs`).
///
/// The second form is for functions that are called often: `export_body!(error, parameters,
/// |caller, parameters| …, |caller, parameters| …)`. The first block returns `Some(())` if it did
/// all. Otherwise the second block runs, which is compiled out of line.
macro_rules! export_body {
    (
        $error:ident, $parameters:expr,
        |$usual_caller:ident, $usual_parameters:ident| $usual:expr,
        |$caller:ident, $parameters_of:ident| $body:expr
    ) => {{
        let usual = |$usual_caller: &$crate::memory::Caller<'_>| -> Option<()> {
            let $usual_parameters = $parameters;
            $usual
        };
        // SAFETY: the caller of the exported function keeps the conventions of the header.
        let is_done = unsafe { $crate::memory::call_usual(usual) };
        if is_done.is_some() {
            return 0;
        }
        // Moves the parameters: references would keep them in memory in the usual path, too.
        let body = move |$caller: &$crate::memory::Caller<'_>| -> $crate::error::Result<()> {
            let $parameters_of = $parameters;
            $body
        };
        // SAFETY: as above.
        unsafe { $crate::memory::call_out_of_line($error, body) }
    }};
    ($error:ident, |$caller:pat_param| $body:expr) => {{
        let body = |$caller: &$crate::memory::Caller<'_>| -> $crate::error::Result<()> { $body };
        // SAFETY: the caller of the exported function keeps the conventions of the header.
        unsafe { $crate::memory::call($error, body) }
    }};
}
pub(crate) use export_body;

/// Runs the body of an exported function, for [`export_body`]. Returns 0 or an error code, and on
/// failure writes `error`. Catches panics.
///
/// # Safety
///
/// `error`, and all pointers that `body` passes to its [`Caller`], are as the header requires.
#[inline(always)]
pub(crate) unsafe fn call(
    error: *mut nuthatch_error,
    body: impl FnOnce(&Caller<'_>) -> Result<()>,
) -> i32 {
    let caller = Caller(PhantomData);
    match catch_unwind(AssertUnwindSafe(|| body(&caller))) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => report(&caller, error, &failure),
        Err(panic) => report(&caller, error, &failure_of(&*panic)),
    }
}

/// Runs the first block of an exported function, for [`export_body`]. A panic gives `None`.
///
/// # Safety
///
/// As [`call`].
#[inline(always)]
pub(crate) unsafe fn call_usual(body: impl FnOnce(&Caller<'_>) -> Option<()>) -> Option<()> {
    catch_unwind(AssertUnwindSafe(|| body(&Caller(PhantomData)))).ok().flatten()
}

/// Does the same as [`call`], out of line.
///
/// # Safety
///
/// As [`call`].
#[inline(never)]
pub(crate) unsafe fn call_out_of_line(
    error: *mut nuthatch_error,
    body: impl FnOnce(&Caller<'_>) -> Result<()>,
) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { call(error, body) }
}

/// Writes a failure to the output parameter. Returns its code. Out of line, so that functions that
/// succeed are short.
#[cold]
#[inline(never)]
fn report(caller: &Caller<'_>, error: *mut nuthatch_error, failure: &Failure) -> i32 {
    caller.maybe_out(error).put(failure.to_c());
    failure.code()
}

#[cold]
fn failure_of(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Failure::Library(NUTHATCH_ERROR_PANIC, format!("a bug of Nuthatch: {text}"))
}

#[expect(clippy::unused_self, reason = "the unsafe blocks rely on its existence")]
impl<'c> Caller<'c> {
    /// Returns bytes of the caller.
    #[inline(always)]
    pub(crate) fn bytes(&self, name: &str, at: *const u8, len: usize) -> Result<&'c [u8]> {
        self.list(name, at, len)
    }

    /// Returns a string of the caller.
    pub(crate) fn text(&self, name: &str, at: *const u8, len: usize) -> Result<&'c str> {
        let bytes = self.bytes(name, at, len)?;
        std::str::from_utf8(bytes).map_err(|_| Failure::argument(name, "UTF-8", "other bytes"))
    }

    /// Returns an array of the caller.
    #[inline(always)]
    pub(crate) fn list<T>(&self, name: &str, at: *const T, len: usize) -> Result<&'c [T]> {
        if len == 0 {
            return Ok(&[]);
        }
        check(name, at, len)?;
        // SAFETY: `self` proves that `at` points to `len` elements; null, unaligned and overlong
        // arrays were refused.
        Ok(unsafe { std::slice::from_raw_parts(at, len) })
    }

    /// Returns an initialized output array of the caller.
    pub(crate) fn room<T: Copy>(&self, name: &str, at: *mut T, len: usize) -> Result<&'c mut [T]> {
        if len == 0 {
            return Ok(&mut []);
        }
        check(name, at, len)?;
        // SAFETY: as above, and no other thread uses the array during the call.
        Ok(unsafe { std::slice::from_raw_parts_mut(at, len) })
    }

    /// Returns an output array of the caller that may be uninitialized.
    #[inline(always)]
    pub(crate) fn blank<T>(
        &self,
        name: &str,
        at: *mut T,
        len: usize,
    ) -> Result<&'c mut [MaybeUninit<T>]> {
        if len == 0 {
            return Ok(&mut []);
        }
        check(name, at, len)?;
        // SAFETY: as above; bytes of `MaybeUninit` need no initialization.
        Ok(unsafe { std::slice::from_raw_parts_mut(at.cast(), len) })
    }

    /// Returns an array of bytes or strings of the caller.
    pub(crate) fn byte_lists(
        &self,
        name: &str,
        at: *const nuthatch_snapshot_bytes,
        len: usize,
    ) -> Result<&'c [CallerBytes]> {
        for bytes in self.list(name, at, len)? {
            if bytes.len > 0 {
                check(name, bytes.data, bytes.len)?;
            }
        }
        self.list(name, at.cast(), len)
    }

    /// Returns an object that C has a pointer to and that one thread at a time uses.
    #[inline(always)]
    pub(crate) fn exclusive<T>(&self, name: &str, at: *mut T) -> Result<&'c mut T> {
        self.maybe_exclusive(name, at)?.ok_or_else(|| null(name))
    }

    /// Returns an object that one thread at a time uses, or `None` for null.
    #[inline(always)]
    pub(crate) fn maybe_exclusive<T>(&self, name: &str, at: *mut T) -> Result<Option<&'c mut T>> {
        if !at.is_null() {
            check(name, at, 1)?;
        }
        // SAFETY: `self` proves that `at` is null or points to an object that no other thread uses.
        Ok(unsafe { at.as_mut() })
    }

    /// Returns another reference to a shared object that C has a pointer to.
    pub(crate) fn share<T>(&self, name: &str, at: *const T) -> Result<Arc<T>> {
        check(name, at, 1)?;
        // SAFETY: `self` proves that the pointer is from `Arc::into_raw` and was not taken back.
        unsafe { Arc::increment_strong_count(at) };
        self.take_shared(name, at)
    }

    /// Takes back the reference to a shared object.
    pub(crate) fn take_shared<T>(&self, name: &str, at: *const T) -> Result<Arc<T>> {
        check(name, at, 1)?;
        // SAFETY: as above, and C does not use this reference again.
        Ok(unsafe { Arc::from_raw(at) })
    }

    /// Takes back an object with one owner.
    pub(crate) fn take<T>(&self, name: &str, at: *mut T) -> Result<Box<T>> {
        check(name, at, 1)?;
        // SAFETY: `self` proves that the pointer is from `Box::into_raw` and was not taken back.
        Ok(unsafe { Box::from_raw(at) })
    }

    /// Returns a struct of the caller.
    #[inline(always)]
    pub(crate) fn one<T>(&self, name: &str, at: *const T) -> Result<&'c T> {
        check(name, at, 1)?;
        // SAFETY: as above.
        Ok(unsafe { &*at })
    }

    /// Returns an object that C has a pointer to, or `None` for null.
    #[inline(always)]
    pub(crate) fn usual<T>(&self, at: *const T) -> Option<&'c T> {
        // SAFETY: `self` proves that `at` is null or from `Arc::into_raw`, so it is aligned.
        unsafe { at.as_ref() }
    }

    /// Returns the parameters of a lookup with a key of 9 to 16 bytes: an object that C has a
    /// pointer to, the key, and an output parameter that may be at any address. Returns `None` if a
    /// pointer is null or the key has another length.
    ///
    /// Checks all of them with one branch. A processor limits how many branches wait for memory at
    /// once, and thereby how many lookups it overlaps: with a branch for each check, a lookup takes
    /// a fifth more time.
    #[inline(always)]
    pub(crate) fn usual_lookup<T, U>(
        &self,
        object: *const T,
        key: *const u8,
        key_len: usize,
        out: *mut U,
    ) -> Option<(&'c T, &'c [u8], UnalignedOut<'c, U>)> {
        // The upper bit is set below a null pointer, and below no other address of a process.
        let below = |address: usize| address.wrapping_sub(1);
        let nulls = below(object.addr()) | below(key.addr()) | below(out.addr());
        let is_null = nulls >> (usize::BITS - 1);
        let is_other_len = key_len.wrapping_sub(9) >> 3;
        if is_null | is_other_len != 0 {
            return None;
        }
        // SAFETY: checked above.
        unsafe { std::hint::assert_unchecked((9..=16).contains(&key_len) && !object.is_null()) };
        // SAFETY: `self` proves that `key` points to `key_len` bytes.
        let key = unsafe { std::slice::from_raw_parts(key, key_len) };
        // SAFETY: `self` proves that `object` is from `Arc::into_raw`, so it is aligned.
        Some((unsafe { &*object }, key, UnalignedOut(out, PhantomData)))
    }

    /// Returns an output parameter that may be at any address, or `None` for null.
    #[inline(always)]
    pub(crate) fn usual_out<T>(&self, at: *mut T) -> Option<UnalignedOut<'c, T>> {
        (!at.is_null()).then_some(UnalignedOut(at, PhantomData))
    }

    /// Returns bytes of the caller, or `None` for null or if they are too long for a key.
    #[inline(always)]
    pub(crate) fn usual_bytes(&self, at: *const u8, len: usize) -> Option<&'c [u8]> {
        if at.is_null() || len > usize::from(u16::MAX) {
            return None;
        }
        // SAFETY: `self` proves that `at` points to `len` bytes.
        Some(unsafe { std::slice::from_raw_parts(at, len) })
    }

    /// Returns a struct of the caller, or `None` for null.
    pub(crate) fn maybe<T>(&self, name: &str, at: *const T) -> Result<Option<&'c T>> {
        if at.is_null() { Ok(None) } else { self.one(name, at).map(Some) }
    }

    /// Returns an output parameter. Null is an error.
    #[inline(always)]
    pub(crate) fn out<T>(&self, name: &str, at: *mut T) -> Result<Out<'c, T>> {
        check(name, at, 1)?;
        Ok(self.maybe_out(at))
    }

    /// Returns an output parameter that may be null.
    #[inline(always)]
    pub(crate) fn maybe_out<T>(&self, at: *mut T) -> Out<'c, T> {
        if !at.is_aligned() {
            return Out(None);
        }
        // SAFETY: `self` proves that `at` is null or points to room for one value.
        Out(unsafe { at.as_mut() })
    }

    /// Returns a progress callback of the caller that any thread may call.
    pub(crate) fn shared_progress(
        &self,
        function: nuthatch_progress,
        user: *mut c_void,
    ) -> SharedProgress {
        SharedProgress(function, user)
    }

    /// Returns a closure that calls the progress callback of the caller.
    pub(crate) fn progress(
        &self,
        function: nuthatch_progress,
        user: *mut c_void,
    ) -> impl FnMut(u64, u64) {
        move |done, all| {
            if let Some(function) = function {
                // SAFETY: `self` proves that the callback accepts these arguments.
                unsafe { function(user, done, all) }
            }
        }
    }
}

/// An output parameter at any address.
pub(crate) struct UnalignedOut<'c, T>(*mut T, PhantomData<&'c mut T>);

impl<T> UnalignedOut<'_, T> {
    #[inline(always)]
    pub(crate) fn put(&mut self, answer: T) {
        // SAFETY: a `Caller` created `self`, and proves that there is room for one value.
        unsafe { self.0.write_unaligned(answer) }
    }
}

impl<T> Out<'_, T> {
    #[inline(always)]
    pub(crate) fn put(&mut self, answer: T) {
        if let Some(place) = &mut self.0 {
            **place = answer;
        }
    }
}

#[inline(always)]
fn check<T>(name: &str, at: *const T, len: usize) -> Result<()> {
    let max_len = isize::MAX as usize / size_of::<T>().max(1);
    if !at.is_null() && at.is_aligned() && len <= max_len {
        return Ok(());
    }
    Err(invalid(name, at.cast(), len, align_of::<T>()))
}

#[cold]
#[inline(never)]
fn invalid(name: &str, at: *const c_void, len: usize, align: usize) -> Failure {
    if at.is_null() {
        return null(name);
    }
    if !at.addr().is_multiple_of(align) {
        return Failure::argument(name, "an aligned address", format!("{at:p}"));
    }
    Failure::argument(name, "a length that there can be", len)
}

#[cold]
fn null(name: &str) -> Failure {
    Failure::argument(name, "an address", "null")
}

/// A progress callback that any thread may call.
pub(crate) struct SharedProgress(nuthatch_progress, *mut c_void);

// SAFETY: the header says which callbacks are called by several threads.
unsafe impl Sync for SharedProgress {}

impl SharedProgress {
    pub(crate) fn call(&self, done: u64, all: u64) {
        if let Some(function) = self.0 {
            // SAFETY: a `Caller` created `self`, and proves that the callback accepts these
            // arguments.
            unsafe { function(self.1, done, all) }
        }
    }
}

/// Returns a reference whose lifetime the compiler does not check.
///
/// # Safety
///
/// The value neither moves nor ends while the reference is used.
pub(crate) unsafe fn unbound<'u, T>(value: &T) -> &'u T {
    let value: *const T = value;
    // SAFETY: the pointer comes from a reference, and the caller keeps the value.
    unsafe { &*value }
}

/// Rows or changes with pointers into memory that is kept beside them.
pub(crate) struct RawPointers<T>(pub(crate) Vec<T>);

// SAFETY: the pointers are passed to C and never used here; the memory that they point to is kept
// beside them and can be freed by any thread.
unsafe impl<T> Send for RawPointers<T> {}
