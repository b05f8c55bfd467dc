//! `RocksDB` as an ordered store, through the C interface of the system's library. This file
//! contains unsafe code, which calls that interface.

use nuthatch_bench::Result;
use nuthatch_bench::store::{Bounds, Ordered, Rival, StoreRows, Sum};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

pub(crate) const ROCKSDB: Rival = Rival { name: "rocksdb", load };

/// Size of the block cache in bytes, with room for all data.
const CACHE_LEN: usize = 8 << 30;
/// Number of rows in a batch during loading.
const BATCH: u32 = 10_000;

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
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_cache_create_lru(bytes: usize) -> Handle;
    fn rocksdb_block_based_options_set_block_cache(options: Handle, cache: Handle);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_open(options: Handle, path: *const c_char, error: ErrorPlace) -> Handle;
    fn rocksdb_close(database: Handle);
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_writeoptions_set_sync(options: Handle, sync: c_uchar);
    fn rocksdb_writeoptions_disable_WAL(options: Handle, disable: c_int);
    fn rocksdb_writebatch_create() -> Handle;
    fn rocksdb_writebatch_clear(batch: Handle);
    fn rocksdb_writebatch_put(
        batch: Handle,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
    );
    fn rocksdb_write(database: Handle, options: Handle, batch: Handle, error: ErrorPlace);
    fn rocksdb_flushoptions_create() -> Handle;
    fn rocksdb_flush(database: Handle, options: Handle, error: ErrorPlace);
    fn rocksdb_compact_range(
        database: Handle,
        from: *const c_char,
        from_len: usize,
        to: *const c_char,
        to_len: usize,
    );
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_readoptions_destroy(options: Handle);
    fn rocksdb_readoptions_set_iterate_upper_bound(o: Handle, key: *const c_char, len: usize);
    fn rocksdb_create_iterator(database: Handle, options: Handle) -> Handle;
    fn rocksdb_iter_destroy(iterator: Handle);
    fn rocksdb_iter_seek_to_first(iterator: Handle);
    fn rocksdb_iter_seek(iterator: Handle, key: *const c_char, len: usize);
    fn rocksdb_iter_valid(iterator: Handle) -> c_uchar;
    fn rocksdb_iter_next(iterator: Handle);
    fn rocksdb_iter_key(iterator: Handle, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_value(iterator: Handle, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_get_error(iterator: Handle, error: ErrorPlace);
}

struct RocksDb {
    database: Handle,
    batch: Handle,
    synced: Handle,
}

fn load(rows: StoreRows, folder: &Path) -> Result<Box<dyn Ordered>> {
    let store = RocksDb::open(folder)?;
    // SAFETY: creates a handle, which lives as long as the process.
    let unlogged = unsafe { rocksdb_writeoptions_create() };
    // SAFETY: the handle was just created.
    unsafe { rocksdb_writeoptions_disable_WAL(unlogged, 1) };
    let mut waiting = 0;
    rows.each(|key, value| {
        store.add(key, value);
        waiting += 1;
        if waiting == BATCH {
            waiting = 0;
            store.commit(unlogged)?;
        }
        Ok(())
    })?;
    store.commit(unlogged)?;
    // SAFETY: creates a handle, which lives as long as the process.
    let flush = unsafe { rocksdb_flushoptions_create() };
    // SAFETY: both handles are alive.
    checked(|error| unsafe { rocksdb_flush(store.database, flush, error) })?;
    // Scans read a single sorted run, as after a bulk load.
    // SAFETY: the null bounds select the whole database.
    unsafe { rocksdb_compact_range(store.database, null(), 0, null(), 0) };
    Ok(Box::new(store))
}

impl RocksDb {
    fn open(folder: &Path) -> Result<Self> {
        let path = CString::new(folder.join("rows").as_os_str().as_bytes())?;
        // SAFETY: creates a handle.
        let options = unsafe { rocksdb_options_create() };
        // SAFETY: the handle was just created.
        unsafe { rocksdb_options_set_create_if_missing(options, 1) };
        // The other stores do not compress.
        // SAFETY: as above.
        unsafe { rocksdb_options_set_compression(options, 0) };
        // SAFETY: creates a handle.
        let table = unsafe { rocksdb_block_based_options_create() };
        // SAFETY: creates a handle.
        let cache = unsafe { rocksdb_cache_create_lru(CACHE_LEN) };
        // SAFETY: both handles were just created.
        unsafe { rocksdb_block_based_options_set_block_cache(table, cache) };
        // SAFETY: as above.
        unsafe { rocksdb_options_set_block_based_table_factory(options, table) };
        // SAFETY: the handle is alive, and the path ends with a zero byte.
        let database = checked(|error| unsafe { rocksdb_open(options, path.as_ptr(), error) })?;
        // SAFETY: creates a handle.
        let batch = unsafe { rocksdb_writebatch_create() };
        // SAFETY: creates a handle.
        let synced = unsafe { rocksdb_writeoptions_create() };
        // SAFETY: the handle was just created.
        unsafe { rocksdb_writeoptions_set_sync(synced, 1) };
        Ok(Self { database, batch, synced })
    }

    fn add(&self, key: &[u8], value: &[u8]) {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the batch is alive, and copies key and value.
        unsafe { rocksdb_writebatch_put(self.batch, k, key.len(), v, value.len()) };
    }

    fn commit(&self, options: Handle) -> Result<()> {
        // SAFETY: all handles are alive.
        checked(|error| unsafe { rocksdb_write(self.database, options, self.batch, error) })?;
        // SAFETY: as above.
        unsafe { rocksdb_writebatch_clear(self.batch) };
        Ok(())
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: the handle is not used after this point.
        unsafe { rocksdb_close(self.database) };
    }
}

/// An iterator and its read options.
struct Rows(Handle, Handle);

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: the handle is not used after this point.
        unsafe { rocksdb_iter_destroy(self.0) };
        // SAFETY: as above.
        unsafe { rocksdb_readoptions_destroy(self.1) };
    }
}

impl Ordered for RocksDb {
    fn scan(&self, bounds: Option<Bounds<'_>>) -> Result<Sum> {
        // SAFETY: creates a handle.
        let options = unsafe { rocksdb_readoptions_create() };
        if let Some((_, before)) = bounds {
            let (key, len) = (before.as_ptr().cast(), before.len());
            // SAFETY: the key outlives the iterator.
            unsafe { rocksdb_readoptions_set_iterate_upper_bound(options, key, len) };
        }
        // SAFETY: both handles are alive, and outlive the iterator.
        let rows = Rows(unsafe { rocksdb_create_iterator(self.database, options) }, options);
        match bounds {
            // SAFETY: the call reads the key before it returns.
            Some((from, _)) => unsafe {
                rocksdb_iter_seek(rows.0, from.as_ptr().cast(), from.len());
            },
            // SAFETY: the iterator is alive.
            None => unsafe { rocksdb_iter_seek_to_first(rows.0) },
        }
        let mut sum = Sum::default();
        // SAFETY: the iterator is alive.
        while unsafe { rocksdb_iter_valid(rows.0) } != 0 {
            sum.add(part(rows.0, rocksdb_iter_key), part(rows.0, rocksdb_iter_value));
            // SAFETY: the iterator is valid, and the slices that it has returned are no longer
            // used.
            unsafe { rocksdb_iter_next(rows.0) };
        }
        // SAFETY: the iterator is alive.
        checked(|error| unsafe { rocksdb_iter_get_error(rows.0, error) })?;
        Ok(sum)
    }

    fn write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(key, value);
        self.commit(self.synced)
    }
}

/// Returns the key or value at the iterator's position, valid until the iterator moves.
fn part<'r>(
    rows: Handle,
    of: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
) -> &'r [u8] {
    let mut len = 0;
    // SAFETY: the iterator is valid.
    let bytes = unsafe { of(rows, &raw mut len) };
    // SAFETY: these `len` bytes are valid until the iterator moves, and the caller drops the slice
    // before that.
    unsafe { std::slice::from_raw_parts(bytes.cast(), len) }
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
