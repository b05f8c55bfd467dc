//! Buffers that the kernel receives into, and the ring through which it takes them.
//!
//! The ring is described in `io_uring_register_buf_ring(3)`: entries of two words, the address of a
//! buffer, then its length and from bit 32 on its number. The tail, up to which entries are ready,
//! is in the upper 16 bits of the second word of the first entry.

use super::BUFFER_LEN;
use super::memory::Memory;
use memmap2::MmapRaw;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

const ENTRY_WORDS: usize = 2;
const PAGE_WORDS: usize = 512;

#[repr(align(4096))]
struct Page([AtomicU64; PAGE_WORDS]);

/// The buffers of a ring.
pub(crate) struct Buffers {
    entries: Box<[Page]>,
    memory: Memory<MmapRaw>,
    count: u16,
    tail: u16,
}

impl Buffers {
    /// Creates this many buffers, ready to be filled: a power of two, at most 32,768.
    pub(crate) fn new(count: u16) -> io::Result<Self> {
        let pages = (usize::from(count) * ENTRY_WORDS).div_ceil(PAGE_WORDS);
        let page = |_| Page([const { AtomicU64::new(0) }; PAGE_WORDS]);
        let memory = Memory::new(count)?;
        let mut buffers = Self { entries: (0..pages).map(page).collect(), memory, count, tail: 0 };
        (0..count).for_each(|id| buffers.put(id));
        buffers.publish();
        Ok(buffers)
    }

    /// Returns the address of the entries and their number.
    pub(crate) fn entries(&self) -> (u64, u16) {
        (self.entries.as_ptr() as u64, self.count)
    }

    /// Returns the start of a buffer; `None` if the kernel does not have it.
    #[inline]
    pub(crate) fn start(&self, id: u16) -> Option<*mut u8> {
        self.memory.get(id).map(MmapRaw::as_mut_ptr)
    }

    /// Makes a buffer ready to be filled after the next [`publish`](Self::publish). While memory is
    /// scarce, the buffer may lose its memory instead.
    pub(crate) fn put(&mut self, id: u16) {
        if self.memory.may_be_filled(id) {
            self.enter(id);
        }
    }

    /// Returns the bytes of memory.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Limits the memory, or ends the limit. Buffers that the kernel has stay with it until they
    /// are filled and returned.
    pub(crate) fn save_memory(&mut self, little: bool) {
        if little {
            self.memory.become_scarce();
        } else {
            self.memory.become_plentiful().into_iter().for_each(|id| self.enter(id));
        }
    }

    fn enter(&mut self, id: u16) {
        let Some(address) = self.start(id).map(|start| start as u64) else { return };
        let entry = self.tail & (self.count - 1);
        self.word(entry, 0).store(address, Ordering::Relaxed);
        let mut word = BUFFER_LEN as u64 | u64::from(id) << 32;
        if entry == 0 {
            // The published tail must not change.
            word |= self.word(0, 1).load(Ordering::Relaxed) & !(u64::MAX >> 16);
        }
        self.word(entry, 1).store(word, Ordering::Relaxed);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Publishes all buffers that were put.
    pub(crate) fn publish(&mut self) {
        let word = self.word(0, 1);
        let without_tail = word.load(Ordering::Relaxed) & (u64::MAX >> 16);
        // Release ordering: a thread that reads the tail also reads the entries.
        word.store(without_tail | u64::from(self.tail) << 48, Ordering::Release);
    }

    fn word(&self, entry: u16, word: usize) -> &AtomicU64 {
        let at = usize::from(entry) * ENTRY_WORDS + word;
        &self.entries[at / PAGE_WORDS].0[at % PAGE_WORDS]
    }
}
