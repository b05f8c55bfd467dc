//! The codec of a thread. Worker threads and the threads of a warm restart have one each, created
//! with the first value.

use nuthatch_compress::{Codec, Dictionaries, Error, Sampler};
use std::cell::RefCell;
use std::sync::Arc;

/// Maximum capacity of a buffer that a thread keeps for its next value.
const MAX_KEPT_CAPACITY: usize = 128 << 10;

/// A codec, and a buffer for compressed values.
pub(super) struct ThreadCodec {
    dictionaries: Arc<Dictionaries>,
    pub(super) codec: Codec,
    /// Empty while an encoded value has it.
    pub(super) buffer: Vec<u8>,
    /// Bytes of the codec's memory that were reported.
    reported: usize,
}

thread_local! {
    static THREAD: RefCell<Option<ThreadCodec>> = const { RefCell::new(None) };
}

impl ThreadCodec {
    fn new(
        dictionaries: &Arc<Dictionaries>,
        sampler: Option<&Arc<Sampler>>,
    ) -> Result<Self, Error> {
        let mut codec = Codec::new(dictionaries)?.min_len(0);
        if let Some(sampler) = sampler {
            codec = codec.sampler(sampler);
        }
        let dictionaries = Arc::clone(dictionaries);
        Ok(Self { dictionaries, codec, buffer: Vec::new(), reported: 0 })
    }

    /// Returns the bytes by which the memory of the codec has changed since the last call.
    #[inline]
    pub(super) fn memory_change(&mut self) -> isize {
        let bytes = self.codec.memory_bytes();
        let reported = std::mem::replace(&mut self.reported, bytes);
        bytes.cast_signed() - reported.cast_signed()
    }
}

/// Calls `run` with the codec of this thread for these dictionaries. `run` must not call a function
/// of this file.
///
/// # Errors
///
/// [`Error::OutOfMemory`] if there is no memory for a codec.
#[inline]
pub(super) fn with_codec<R>(
    dictionaries: &Arc<Dictionaries>,
    sampler: Option<&Arc<Sampler>>,
    run: impl FnOnce(&mut ThreadCodec) -> R,
) -> Result<R, Error> {
    THREAD.with_borrow_mut(|thread| {
        if let Some(found) = thread
            && Arc::ptr_eq(&found.dictionaries, dictionaries)
        {
            return Ok(run(found));
        }
        Ok(run(thread.insert(ThreadCodec::new(dictionaries, sampler)?)))
    })
}

/// Switches the codec of this thread to the current set of dictionaries, if there is a codec.
#[inline]
pub(super) fn refresh() {
    THREAD.with_borrow_mut(|thread| {
        if let Some(found) = thread {
            found.codec.refresh();
        }
    });
}

/// Keeps a buffer for the next value of this thread, unless it is long.
#[inline]
pub(super) fn keep_buffer(buffer: Vec<u8>) {
    if buffer.capacity() <= MAX_KEPT_CAPACITY {
        THREAD.with_borrow_mut(|thread| {
            if let Some(found) = thread {
                found.buffer = buffer;
            }
        });
    }
}
