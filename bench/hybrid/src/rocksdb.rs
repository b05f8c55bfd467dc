//! `RocksDB` through the C interface of the system's library. This file contains unsafe code, which
//! calls that interface.

use crate::systems::{Limits, Session, System, key};
use crate::workload::Workload;
use nuthatch_bench::Result;
use std::ffi::{CStr, CString, c_char, c_double, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Bits of the bloom filter for each key, as the documentation of `RocksDB` recommends.
const BLOOM_BITS: c_double = 10.0;
/// Size of a memtable, as a share of the memory. There are two: one that is written to, and one
/// that is flushed.
const MEMTABLE_RATIO: u64 = 16;
const MEMTABLES: c_int = 2;
/// The block cache has 4 shards. With the default number, the index and the filter of a file do not
/// fit into the shard of a small cache, and are read from the device again and again.
const SHARD_BITS: c_int = 2;

/// An opaque type of the library, used only behind pointers.
#[repr(C)]
struct Opaque([u8; 0]);

type Handle = *mut Opaque;
type ErrorPlace = *mut *mut c_char;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_options_set_create_if_missing(options: Handle, create: c_uchar);
    fn rocksdb_options_set_compression(options: Handle, kind: c_int);
    fn rocksdb_options_set_write_buffer_size(options: Handle, bytes: usize);
    fn rocksdb_options_set_max_write_buffer_number(options: Handle, number: c_int);
    fn rocksdb_options_set_use_direct_reads(options: Handle, direct: c_uchar);
    fn rocksdb_options_set_use_direct_io_for_flush_and_compaction(o: Handle, direct: c_uchar);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_lru_cache_options_create() -> Handle;
    fn rocksdb_lru_cache_options_set_capacity(options: Handle, bytes: usize);
    fn rocksdb_lru_cache_options_set_num_shard_bits(options: Handle, bits: c_int);
    fn rocksdb_cache_create_lru_opts(options: Handle) -> Handle;
    fn rocksdb_block_based_options_set_block_cache(table: Handle, cache: Handle);
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: c_double) -> Handle;
    fn rocksdb_block_based_options_set_filter_policy(table: Handle, filter: Handle);
    fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(t: Handle, cached: c_uchar);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_open(options: Handle, path: *const c_char, error: ErrorPlace) -> Handle;
    fn rocksdb_close(database: Handle);
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_writeoptions_disable_WAL(options: Handle, disable: c_int);
    fn rocksdb_put(
        database: Handle,
        options: Handle,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: ErrorPlace,
    );
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_get_pinned(
        database: Handle,
        options: Handle,
        key: *const c_char,
        key_len: usize,
        error: ErrorPlace,
    ) -> Handle;
    fn rocksdb_pinnableslice_value(slice: Handle, len: *mut usize) -> *const c_char;
    fn rocksdb_pinnableslice_destroy(slice: Handle);
    fn rocksdb_flushoptions_create() -> Handle;
    fn rocksdb_flush(database: Handle, options: Handle, error: ErrorPlace);
    fn rocksdb_compact_range(
        database: Handle,
        from: *const c_char,
        from_len: usize,
        to: *const c_char,
        to_len: usize,
    );
}

/// A database and its options, all of which threads may share.
struct RocksDb {
    database: Handle,
    reads: Handle,
    unlogged: Handle,
    workload: Arc<Workload>,
}

// SAFETY: the library permits concurrent calls with these handles.
unsafe impl Sync for RocksDb {}

/// Opens a database whose memtables and block cache together have the size of the memory. The block
/// cache also contains indexes and filters.
pub(crate) fn open(limits: &Limits) -> Result<Box<dyn System>> {
    let memtable = limits.memory / MEMTABLE_RATIO;
    let cache = limits.memory - memtable * u64::try_from(MEMTABLES)?;
    let table = table_options(usize::try_from(cache)?);
    let options = options(table, usize::try_from(memtable)?);
    let database = database(options, &limits.folder)?;
    // SAFETY: creates a handle.
    let reads = unsafe { rocksdb_readoptions_create() };
    // SAFETY: creates a handle.
    let unlogged = unsafe { rocksdb_writeoptions_create() };
    // SAFETY: the handle was just created.
    unsafe { rocksdb_writeoptions_disable_WAL(unlogged, 1) };
    let workload = Arc::clone(&limits.workload);
    Ok(Box::new(RocksDb { database, reads, unlogged, workload }))
}

fn table_options(cache_len: usize) -> Handle {
    // SAFETY: creates a handle.
    let table = unsafe { rocksdb_block_based_options_create() };
    // SAFETY: creates a handle.
    let cache = unsafe { rocksdb_lru_cache_options_create() };
    // SAFETY: the handle is alive.
    unsafe { rocksdb_lru_cache_options_set_capacity(cache, cache_len) };
    // SAFETY: as above.
    unsafe { rocksdb_lru_cache_options_set_num_shard_bits(cache, SHARD_BITS) };
    // SAFETY: as above.
    let cache = unsafe { rocksdb_cache_create_lru_opts(cache) };
    // SAFETY: both handles were just created.
    unsafe { rocksdb_block_based_options_set_block_cache(table, cache) };
    // SAFETY: creates a handle.
    let filter = unsafe { rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS) };
    // SAFETY: both handles are alive, and the call takes over the filter.
    unsafe { rocksdb_block_based_options_set_filter_policy(table, filter) };
    // SAFETY: the handle is alive.
    unsafe { rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1) };
    table
}

fn options(table: Handle, memtable_len: usize) -> Handle {
    // SAFETY: creates a handle.
    let options = unsafe { rocksdb_options_create() };
    // SAFETY: the handle is alive.
    unsafe { rocksdb_options_set_create_if_missing(options, 1) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_compression(options, 0) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_write_buffer_size(options, memtable_len) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_max_write_buffer_number(options, MEMTABLES) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_use_direct_reads(options, 1) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_use_direct_io_for_flush_and_compaction(options, 1) };
    // SAFETY: both handles are alive.
    unsafe { rocksdb_options_set_block_based_table_factory(options, table) };
    options
}

fn database(options: Handle, folder: &Path) -> Result<Handle> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: the handle is alive, and the path ends with a zero byte.
    checked(|error| unsafe { rocksdb_open(options, path.as_ptr(), error) })
}

impl System for RocksDb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Operations(self)))
    }

    /// Writes the memtable to a file, and merges all files into one sorted run.
    fn settle(&self) -> Result<()> {
        // SAFETY: creates a handle, which lives as long as the process.
        let flush = unsafe { rocksdb_flushoptions_create() };
        // SAFETY: both handles are alive.
        checked(|error| unsafe { rocksdb_flush(self.database, flush, error) })?;
        // SAFETY: the null bounds select the whole database.
        unsafe { rocksdb_compact_range(self.database, null(), 0, null(), 0) };
        Ok(())
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: the handle is not used after this point.
        unsafe { rocksdb_close(self.database) };
    }
}

struct Operations<'d>(&'d RocksDb);

impl Session for Operations<'_> {
    fn get(&mut self, number: u32) -> Result<Option<bool>> {
        let RocksDb { database, reads, ref workload, .. } = *self.0;
        let key = key(number);
        let bytes = key.as_ptr().cast();
        // SAFETY: the handles are alive, and the call reads the key before it returns.
        let slice = checked(|error| unsafe {
            rocksdb_get_pinned(database, reads, bytes, key.len(), error)
        })?;
        if slice.is_null() {
            return Ok(None);
        }
        let mut len = 0;
        // SAFETY: the slice is alive.
        let value = unsafe { rocksdb_pinnableslice_value(slice, &raw mut len) };
        // SAFETY: the bytes are valid until the slice is destroyed below.
        let value = unsafe { std::slice::from_raw_parts(value.cast(), len) };
        let is_correct = workload.is_value(number, value);
        // SAFETY: neither the slice nor its bytes are used after this point.
        unsafe { rocksdb_pinnableslice_destroy(slice) };
        Ok(Some(is_correct))
    }

    fn set(&mut self, number: u32, value: &[u8]) -> Result<()> {
        let RocksDb { database, unlogged, .. } = *self.0;
        let key = key(number);
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the handles are alive, and the call copies key and value.
        checked(|error| unsafe {
            rocksdb_put(database, unlogged, k, key.len(), v, value.len(), error);
        })
    }
}

fn checked<R>(call: impl FnOnce(ErrorPlace) -> R) -> Result<R> {
    let mut error: *mut c_char = null_mut();
    let answer = call(&raw mut error);
    if error.is_null() {
        return Ok(answer);
    }
    // SAFETY: the text ends with a zero byte. It is not freed, since the process exits after the
    // error.
    let text = unsafe { CStr::from_ptr(error) };
    Err(format!("rocksdb: {}", text.to_string_lossy()).into())
}
