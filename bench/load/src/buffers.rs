//! Provided buffers of an `io_uring`: the kernel takes a buffer from the queue and receives into
//! it. This process returns the buffer to the queue after use.

use memmap2::{MmapMut, MmapRaw};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a buffer in bytes.
pub(crate) const BUFFER_BYTES: usize = 16 << 10;

/// A page of the queue. Each entry has two words.
#[repr(align(4096))]
struct Page([AtomicU64; 512]);

const ENTRIES_IN_PAGE: u16 = 256;

/// The buffers of one ring.
pub(crate) struct Buffers {
    /// The queue, written by this process and read by the kernel. The first word of an entry is the
    /// address of a buffer. The second word contains the buffer's length, and its number from bit
    /// 32 on. In the first entry, the bits above the number are the tail.
    queue: Arc<[Page]>,
    memory: Arc<MmapRaw>,
    count: u16,
    tail: u16,
}

impl Buffers {
    /// Creates `count` buffers and makes all of them available to the kernel. `count` is a power of
    /// two of at most 32,768.
    pub(crate) fn new(count: u16) -> io::Result<Self> {
        let pages = count.div_ceil(ENTRIES_IN_PAGE);
        let page = |_| Page([const { AtomicU64::new(0) }; 512]);
        let memory = MmapMut::map_anon(usize::from(count) * BUFFER_BYTES)?;
        let mut buffers = Self {
            queue: (0..pages).map(page).collect(),
            memory: Arc::new(memory.into()),
            count,
            tail: 0,
        };
        for id in 0..count {
            buffers.give_back(id);
        }
        Ok(buffers)
    }

    /// Returns the address of the queue and its number of entries.
    pub(crate) fn shared_queue(&self) -> (u64, u16) {
        (self.queue.as_ptr() as u64, self.count)
    }

    /// Returns the address of a buffer of [`BUFFER_BYTES`].
    pub(crate) fn start(&self, id: u16) -> *mut u8 {
        // The kernel returns only valid numbers. The mask keeps the address in bounds in any case.
        let id = usize::from(id & (self.count - 1));
        self.memory.as_mut_ptr().wrapping_add(id * BUFFER_BYTES)
    }

    /// Makes a buffer available to the kernel.
    pub(crate) fn give_back(&mut self, id: u16) {
        let entry = self.tail & (self.count - 1);
        let [address, rest] = self.words(entry);
        address.store(self.start(id) as u64, Ordering::Relaxed);
        let mut value = BUFFER_BYTES as u64 | u64::from(id) << 32;
        if entry == 0 {
            value |= u64::from(self.tail) << 48;
        }
        rest.store(value, Ordering::Relaxed);
        self.tail = self.tail.wrapping_add(1);
        // The store with release ordering publishes the entry before the tail.
        let [_, first] = self.words(0);
        let without_tail = first.load(Ordering::Relaxed) & (u64::MAX >> 16);
        first.store(without_tail | u64::from(self.tail) << 48, Ordering::Release);
    }

    fn words(&self, entry: u16) -> [&AtomicU64; 2] {
        let page = &self.queue[usize::from(entry / ENTRIES_IN_PAGE)].0;
        let at = 2 * usize::from(entry % ENTRIES_IN_PAGE);
        [&page[at], &page[at + 1]]
    }

    /// Leaks the memory, because the kernel may still write to it.
    pub(crate) fn leak(&self) {
        std::mem::forget((Arc::clone(&self.queue), Arc::clone(&self.memory)));
    }
}
