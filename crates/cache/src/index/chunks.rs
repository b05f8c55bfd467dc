//! The memory of tables: chunks that are allocated on first use and never freed.

use crate::index::table::Table;
use crate::memory::arena::prefetch;
use std::sync::{Mutex, OnceLock};

/// Tables in a chunk.
const CHUNK_LEN: usize = 256;

/// Number of items of a table, in a cache line of its own: writers of different tables do not
/// contend.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Items(pub(super) Mutex<u32>);

/// Tables with consecutive numbers. What readers read is apart from what writers lock.
struct Chunk {
    tables: Box<[Table]>,
    items: Box<[Items]>,
}

/// All tables that were ever used, by their numbers.
pub(super) struct TableChunks(Box<[OnceLock<Box<Chunk>>]>);

impl TableChunks {
    /// Prepares for tables with numbers below `end`.
    pub(super) fn new(end: usize) -> Self {
        Self((0..end.div_ceil(CHUNK_LEN)).map(|_| OnceLock::new()).collect())
    }

    #[inline]
    fn chunk(&self, number: usize) -> &Chunk {
        self.0[number / CHUNK_LEN].get_or_init(|| {
            let tables = (0..CHUNK_LEN).map(|_| Table::default()).collect();
            let items = (0..CHUNK_LEN).map(|_| Items::default()).collect();
            Box::new(Chunk { tables, items })
        })
    }

    #[inline]
    pub(super) fn table(&self, number: usize) -> &Table {
        &self.chunk(number).tables[number % CHUNK_LEN]
    }

    /// Prefetches a table, and its lock and number of items if it is locked.
    #[inline]
    pub(super) fn prefetch(&self, number: usize, is_locked: bool) {
        let Chunk { tables, items } = self.chunk(number);
        prefetch(&tables[number % CHUNK_LEN]);
        if is_locked {
            prefetch(&items[number % CHUNK_LEN]);
        }
    }

    #[inline]
    pub(super) fn items(&self, number: usize) -> &Items {
        &self.chunk(number).items[number % CHUNK_LEN]
    }

    /// Returns the bytes that the tables take, without their pages.
    pub(super) fn memory(&self) -> u64 {
        let chunks = self.0.iter().filter(|chunk| chunk.get().is_some()).count();
        let table_len = size_of::<Table>() + size_of::<Items>();
        (size_of_val(&*self.0) + chunks * CHUNK_LEN * table_len) as u64
    }
}
