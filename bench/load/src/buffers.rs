//! Memory that the kernel receives into: a queue of buffers that it takes from, and that they come
//! back to.

use memmap2::{MmapMut, MmapRaw};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a buffer.
pub(crate) const BUFFER_BYTES: usize = 16 << 10;

/// A page of the queue: entries of two words each.
#[repr(align(4096))]
struct Page([AtomicU64; 512]);

const ENTRIES_IN_PAGE: u16 = 256;

/// Buffers of one ring.
pub(crate) struct Buffers {
    /// Written here, read by the kernel. The first word of an entry is the address of a buffer, the
    /// second its length and, from bit 32, its number; the first entry has the tail above that.
    queue: Arc<[Page]>,
    memory: Arc<MmapRaw>,
    count: u16,
    tail: u16,
}

impl Buffers {
    /// So many buffers, all of them ready to be filled; at most 32,768, and a power of two.
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

    /// Where the queue is, and how many entries it has.
    pub(crate) fn shared_queue(&self) -> (u64, u16) {
        (self.queue.as_ptr() as u64, self.count)
    }

    /// Where a buffer begins, which has [`BUFFER_BYTES`].
    pub(crate) fn start(&self, id: u16) -> *mut u8 {
        // The kernel returns only numbers that it was given; the mask holds it to that.
        let id = usize::from(id & (self.count - 1));
        self.memory.as_mut_ptr().wrapping_add(id * BUFFER_BYTES)
    }

    /// Lets the kernel fill a buffer (again).
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
        // The kernel must see the entry before it sees the tail.
        let [_, first] = self.words(0);
        let without_tail = first.load(Ordering::Relaxed) & (u64::MAX >> 16);
        first.store(without_tail | u64::from(self.tail) << 48, Ordering::Release);
    }

    fn words(&self, entry: u16) -> [&AtomicU64; 2] {
        let page = &self.queue[usize::from(entry / ENTRIES_IN_PAGE)].0;
        let at = 2 * usize::from(entry % ENTRIES_IN_PAGE);
        [&page[at], &page[at + 1]]
    }

    /// Keeps the memory for good: for a kernel that may still write to it.
    pub(crate) fn leak(&self) {
        std::mem::forget((Arc::clone(&self.queue), Arc::clone(&self.memory)));
    }
}
