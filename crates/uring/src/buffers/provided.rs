//! Buffers that the kernel receives into, and the ring through which it takes them.
//!
//! The ring is described in `io_uring_register_buf_ring(3)`: entries of two words, the address of a
//! buffer, then its length and from bit 32 on its number. The tail, up to which entries are ready,
//! is in the upper 16 bits of the second word of the first entry.
//!
//! This file has unsafe code. It is sound because a buffer has one owner at any time: the kernel,
//! from [`put`](ProvidedBuffers::put) until it reports the buffer as filled, then the [`Filled`].
//! A buffer loses its memory only when it is returned, and then it is not given to the kernel
//! again.

use super::filled::{BUFFER_LEN, Filled};
use super::memory::Memory;
use memmap2::MmapRaw;
use std::io;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

const ENTRY_WORDS: usize = 2;
const PAGE_WORDS: usize = 512;

#[repr(align(4096))]
struct Page([AtomicU64; PAGE_WORDS]);

/// The buffers of a ring.
pub(crate) struct ProvidedBuffers {
    entries: Box<[Page]>,
    memory: Memory<MmapRaw>,
    count: u16,
    tail: u16,
}

impl ProvidedBuffers {
    /// Creates this many buffers, ready to be filled: a power of two.
    pub(crate) fn new(count: u16) -> io::Result<Self> {
        if !count.is_power_of_two() {
            let message = format!("receive buffers: expected a power of two; found: {count}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let pages = (usize::from(count) * ENTRY_WORDS).div_ceil(PAGE_WORDS);
        let page = |_| Page([const { AtomicU64::new(0) }; PAGE_WORDS]);
        let memory = Memory::new(count)?;
        let mut buffers = Self { entries: (0..pages).map(page).collect(), memory, count, tail: 0 };
        (0..count).for_each(|index| buffers.enter(usize::from(index)));
        buffers.publish();
        Ok(buffers)
    }

    /// Returns the address of the entries and their number.
    pub(crate) fn entries(&self) -> (u64, u16) {
        (self.entries.as_ptr() as u64, self.count)
    }

    /// Returns a buffer that the kernel has filled.
    ///
    /// # Safety
    ///
    /// The kernel took the buffer from this ring and has reported it as filled, with this many
    /// bytes. For each report, this function is called once.
    #[inline]
    pub(crate) unsafe fn filled(&self, id: u16, len: u32) -> Filled {
        self.memory.filled(id, len)
    }

    /// Returns received bytes, until their buffer is returned. Those of a buffer of another ring
    /// are empty.
    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        let Some(start) = self.start(self.memory.index(filled)) else { return &[] };
        // SAFETY: the kernel has filled these bytes. It writes there again, and their memory goes,
        // only after the buffer was returned, which takes the one `Filled` there is of it.
        unsafe { slice::from_raw_parts(start, filled.len()) }
    }

    /// Makes a buffer ready to be filled after the next [`publish`](Self::publish). While memory is
    /// scarce, the buffer may lose its memory instead. A buffer of another ring is ignored.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is returned only once")]
    pub(crate) fn put(&mut self, filled: Filled) {
        let index = self.memory.index(&filled);
        if self.memory.may_be_filled(index) {
            self.enter(index);
        }
    }

    /// Returns the bytes of memory.
    #[inline]
    pub(crate) fn memory_len(&self) -> usize {
        self.memory.len()
    }

    /// Limits the memory, or ends the limit. Buffers that the kernel has stay with it until they
    /// are filled and returned.
    pub(crate) fn save_memory(&mut self, is_scarce: bool) {
        if is_scarce {
            self.memory.become_scarce();
        } else {
            for index in self.memory.become_plentiful() {
                self.enter(usize::from(index));
            }
        }
    }

    /// Returns the start of a buffer; `None` if it has no memory.
    #[inline]
    fn start(&self, index: usize) -> Option<*mut u8> {
        self.memory.get(index).map(MmapRaw::as_mut_ptr)
    }

    #[inline]
    fn enter(&mut self, index: usize) {
        let Some(address) = self.start(index).map(|start| start as u64) else { return };
        let entry = self.tail & (self.count - 1);
        self.word(entry, 0).store(address, Ordering::Relaxed);
        // There are at most 65,535 buffers.
        let mut word = BUFFER_LEN as u64 | (index as u64) << 32;
        if entry == 0 {
            // The published tail must not change.
            word |= self.word(0, 1).load(Ordering::Relaxed) & !(u64::MAX >> 16);
        }
        self.word(entry, 1).store(word, Ordering::Relaxed);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Publishes all buffers that were put.
    #[inline]
    pub(crate) fn publish(&mut self) {
        let word = self.word(0, 1);
        let without_tail = word.load(Ordering::Relaxed) & (u64::MAX >> 16);
        // Release ordering: a thread that reads the tail also reads the entries.
        word.store(without_tail | u64::from(self.tail) << 48, Ordering::Release);
    }

    #[inline]
    fn word(&self, entry: u16, word: usize) -> &AtomicU64 {
        let at = usize::from(entry) * ENTRY_WORDS + word;
        &self.entries[at / PAGE_WORDS].0[at % PAGE_WORDS]
    }
}
