//! The LMDB environment: its transactions, moving its map, setting its flags. This file has unsafe
//! code: heed requires it for calls that can break LMDB's assumptions.

mod links;
pub(crate) mod lock_file;
pub(crate) mod mapping;
pub(crate) mod network;
pub(crate) mod open;
pub(crate) mod remap_barrier;
mod removed;
mod short_write;

use crate::error::{Error, FullCause, Result};
use crate::file::check::check_file;
use crate::file::{corrupt, make_folder, page_multiple, resolve_folder};
use crate::file_names::DATA;
use crate::options::{Durability, Options};
use crate::process::registry::{Registration, Waiter};
use crate::process::{OfProcess, fork};
use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvInfo, FlagSetMode, MdbError, RoTxn, RwTxn,
    WithoutTls,
};
use lock_file::StoreLock;
use mapping::Mapping;
use open::{MIN_FREE_BYTES, OpenEnv, open_mapped};
use remap_barrier::{CounterId, RemapBarrier};
use removed::{RemovalCheck, check_linked};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// LMDB's handle of a table.
pub(crate) type Dbi = Database<'static, Bytes, Bytes>;

/// Before a write transaction begins, the map is enlarged unless this many bytes of it, or an
/// eighth of it, are free.
const HEADROOM: u64 = 64 << 20;
/// For this long after the map could not be moved, further attempts wait only for
/// [`RETRY_PATIENCE`]: one long transaction must not delay each write.
const RETRY_PERIOD: Duration = Duration::from_secs(5);
const RETRY_PATIENCE: Duration = Duration::from_millis(2);
/// Reader slots of dead processes are cleared once per this many write transactions.
const WRITES_PER_STALE_CHECK: u64 = 256;

pub(crate) struct Environment {
    // Unregisters its signal guard before the map is unmapped.
    mapping: Mapping,
    // Closed before the lock is released, and both before the store can be opened again: fields are
    // dropped in this order.
    env: OpenEnv,
    lock: Option<StoreLock>,
    registration: Registration,
    /// The mapped file, even if its path has another file by now.
    data: (File, PathBuf),
    removal: RemovalCheck,
    path: PathBuf,
    barrier: RemapBarrier,
    main: Dbi,
    read_only: bool,
    limit: Option<u64>,
    patience: Duration,
    /// Held by the thread of this process that writes. Contains the durability that LMDB's flags
    /// are set to.
    write_lock: Mutex<Durability>,
    /// The thread that writes: if it began another transaction, it would wait for itself.
    writer_thread: Mutex<Option<ThreadId>>,
    writes: AtomicU64,
    page_size: u32,
    failed_growth: Mutex<Option<Instant>>,
    /// The map could not be mapped again and must not be accessed.
    broken: AtomicBool,
    closed: AtomicBool,
}

/// Counts a transaction at the remap barrier until it is dropped.
pub(crate) struct BarrierGuard<'e> {
    barrier: &'e RemapBarrier,
    counter: CounterId,
}

impl Drop for BarrierGuard<'_> {
    fn drop(&mut self) {
        self.barrier.leave(self.counter);
    }
}

/// Exclusive right to write among the threads of this process.
pub(crate) struct WriteGuard<'e> {
    durability: MutexGuard<'e, Durability>,
    writer: OfProcess<&'e Mutex<Option<ThreadId>>>,
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        // In a child made by `fork`, a thread of the parent may hold the lock forever.
        if self.writer.is_own() {
            *lock(&self.writer) = None;
        }
    }
}

impl Environment {
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self> {
        options.validate()?;
        fork::watch().map_err(|e| Error::io(path, "open", e))?;
        network::check(path, options)?;
        make_folder(path, options)?;
        let path = resolve_folder(path)?;
        // Checked before the lock is taken: if there is no store, no lock file is created.
        check_file(&path, options)?;
        let (registration, lock) = StoreLock::share(&path, options.read_only)?;
        let used = check_file(&path, options)?;
        let env = open_mapped(&path, options, used)?;
        let read = env.read_txn().map_err(|e| Error::of(&path, "begin", e))?;
        let main = env
            .open_databases_and_commit(read, |opener, read| {
                opener.open_database::<Bytes, Bytes>(read, None).map(CommitOrAbort::<_, ()>::Commit)
            })
            .map_err(|e| Error::of(&path, "open the main table", e))?
            .commit()
            .flatten()
            .ok_or_else(|| Error::table("", "the main table", "none"))?;
        let data = env.try_clone_inner_file().map_err(|e| Error::of(&path, "open", e))?;
        let environment = Self {
            data: (data, path.join(DATA)),
            removal: RemovalCheck::new(),
            barrier: RemapBarrier::new(),
            main,
            read_only: options.read_only,
            limit: options.limit,
            patience: options.growth_patience,
            write_lock: Mutex::new(Durability::Sync),
            writer_thread: Mutex::new(None),
            page_size: env.unnamed_database_stat().page_size,
            writes: AtomicU64::new(0),
            failed_growth: Mutex::new(None),
            broken: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            mapping: Mapping::new(),
            path,
            registration,
            lock,
            env,
        };
        environment.env.clear_stale_readers().map_err(|e| environment.error("readers", e))?;
        Ok(environment)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error if the files of the store were removed or replaced, since the commit would
    /// be lost. Commits that are not synced check only at intervals.
    pub(crate) fn check_before_commit(&self, write_guard: &WriteGuard<'_>) -> Result<()> {
        if self.removal.is_due(*write_guard.durability) { self.check_linked() } else { Ok(()) }
    }

    /// Returns an error if the files of the store were removed or replaced.
    pub(crate) fn check_linked(&self) -> Result<()> {
        check_linked(&self.data.0, &self.data.1)?;
        self.lock.as_ref().map_or(Ok(()), StoreLock::check_linked)
    }

    /// Returns the data file and its path, for reading it without LMDB.
    pub(crate) fn data(&self) -> (&File, &Path) {
        (&self.data.0, &self.data.1)
    }

    pub(crate) fn main(&self) -> Dbi {
        self.main
    }

    pub(crate) fn heed(&self) -> &Env<WithoutTls> {
        &self.env
    }

    pub(crate) fn max_key_len(&self) -> usize {
        self.env.max_key_size()
    }

    #[cold]
    pub(crate) fn error(&self, operation: &'static str, error: heed::Error) -> Error {
        match error {
            heed::Error::Mdb(MdbError::MapFull) => {
                Error::Full { max: self.env.info().map_size as u64, cause: self.full_cause() }
            }
            heed::Error::Mdb(MdbError::ReadersFull) => {
                Error::ReadersFull { max: self.env.max_readers() }
            }
            heed::Error::Io(error) => {
                let (file, path) = self.data();
                Error::io(path, operation, short_write::reason(error, file, self.page_size))
            }
            error => Error::of(&self.path, operation, error),
        }
    }

    fn full_cause(&self) -> FullCause {
        match (self.limit, lock(&self.failed_growth).is_some()) {
            (Some(limit), _) if self.env.info().map_size as u64 >= limit => FullCause::Limit,
            (_, true) => FullCause::Transactions,
            _ => FullCause::Addresses,
        }
    }

    /// Makes all new transactions fail.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Returns an object that waits until the environment is closed.
    pub(crate) fn waiter(&self) -> Waiter {
        self.registration.waiter()
    }

    /// Returns an error in a child made by `fork`, which must not use its parent's environment.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        self.env.owner.check()
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.check_process()?;
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        if self.broken.load(Ordering::Relaxed) {
            return Err(Error::Broken);
        }
        self.check_readable()
    }

    /// Returns an error if a page of the file could not be read since it was mapped.
    #[inline]
    pub(crate) fn check_readable(&self) -> Result<()> {
        if self.mapping.is_lost() { Err(self.unreadable()) } else { Ok(()) }
    }

    /// Returns the error for a mapped file that could not be read.
    #[cold]
    fn unreadable(&self) -> Error {
        let path = self.path.join(DATA);
        let len = self.env.real_disk_size().unwrap_or(0);
        let expected = "the pages that the file had: it was truncated while it was open, or the \
                        disk failed";
        corrupt(&path, len, expected, format!("a file of {len} bytes"))
    }

    /// Returns the number of open transactions of this process.
    pub(crate) fn open_transactions(&self) -> usize {
        self.barrier.open_transactions()
    }

    /// Returns whether a thread waits for transactions to end, to move the map.
    #[cfg(test)]
    pub(crate) fn waits_to_grow(&self) -> bool {
        self.barrier.is_awaited()
    }

    /// Returns LMDB's information about the environment. The map does not move meanwhile.
    pub(crate) fn info(&self) -> Result<EnvInfo> {
        let _guard = self.enter_barrier()?;
        Ok(self.env.info())
    }

    fn enter_barrier(&self) -> Result<BarrierGuard<'_>> {
        // In a child made by `fork`, the barrier could be closed forever.
        self.check_process()?;
        let guard = BarrierGuard { barrier: &self.barrier, counter: self.barrier.enter() };
        // The map may have been lost while the barrier was closed.
        self.check()?;
        Ok(guard)
    }

    /// Begins a read transaction.
    pub(crate) fn read(&self) -> Result<(RoTxn<'_, WithoutTls>, BarrierGuard<'_>)> {
        self.begin("begin to read", Env::read_txn)
    }

    /// Begins a read transaction that owns a reference to the environment.
    pub(crate) fn read_owned(&self) -> Result<(RoTxn<'static, WithoutTls>, CounterId)> {
        let (txn, guard) = self.begin("begin to read", |env| env.clone().static_read_txn())?;
        let counter = guard.counter;
        // Undone by `leave`, when the transaction ends.
        std::mem::forget(guard);
        Ok((txn, counter))
    }

    /// Undoes the count of `read_owned`.
    pub(crate) fn leave(&self, counter: CounterId) {
        self.barrier.leave(counter);
    }

    /// Waits until no other thread of this process writes, and returns the exclusive right to
    /// write. Grows the map if little of it is free.
    ///
    /// # Errors
    ///
    /// [`Error::Lmdb`] if this thread has a write transaction open.
    pub(crate) fn lock_for_writing(&self) -> Result<WriteGuard<'_>> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.check()?;
        let me = std::thread::current().id();
        if *lock(&self.writer_thread) == Some(me) {
            let message = "this thread has a write transaction open already".to_owned();
            return Err(Error::Lmdb { operation: "begin to write", message });
        }
        let write_guard = WriteGuard {
            durability: lock(&self.write_lock),
            writer: OfProcess::new(&self.writer_thread),
        };
        *lock(&self.writer_thread) = Some(me);
        if self.writes.fetch_add(1, Ordering::Relaxed).is_multiple_of(WRITES_PER_STALE_CHECK) {
            self.env.clear_stale_readers().map_err(|e| self.error("readers", e))?;
        }
        self.ensure_headroom()?;
        Ok(write_guard)
    }

    /// Begins a write transaction.
    pub(crate) fn write<'e>(
        &'e self,
        write_guard: &mut WriteGuard<'_>,
        durability: Durability,
    ) -> Result<(RwTxn<'e>, BarrierGuard<'e>)> {
        self.set_durability(write_guard, durability)?;
        self.begin("begin to write", Env::write_txn)
    }

    fn begin<'e, T>(
        &'e self,
        operation: &'static str,
        begin: impl Fn(&'e Env<WithoutTls>) -> heed::Result<T>,
    ) -> Result<(T, BarrierGuard<'e>)> {
        const MAX_ATTEMPTS: usize = 8;
        for last in (0..MAX_ATTEMPTS).map(|n| n + 1 == MAX_ATTEMPTS) {
            let guard = self.enter_barrier()?;
            match begin(&self.env) {
                Ok(txn) => return Ok((txn, guard)),
                Err(heed::Error::Mdb(MdbError::MapResized)) if !last => {
                    let map = self.env.info().map_size;
                    drop(guard);
                    self.adopt_map_size(map)?;
                }
                Err(heed::Error::Mdb(MdbError::ReadersFull)) if !last => {
                    let cleared = self.env.clear_stale_readers();
                    if cleared.map_err(|e| self.error("readers", e))? == 0 {
                        return Err(Error::ReadersFull { max: self.env.max_readers() });
                    }
                }
                Err(error) => return Err(self.error(operation, error)),
            }
        }
        Err(Error::io(
            &self.path,
            operation,
            std::io::Error::other("other processes enlarged the map repeatedly"),
        ))
    }

    /// Sets what commits wait for. The caller has the right to write, so no commit is in progress.
    fn set_durability(
        &self,
        write_guard: &mut WriteGuard<'_>,
        durability: Durability,
    ) -> Result<()> {
        if *write_guard.durability == durability {
            return Ok(());
        }
        let set = |flag: EnvFlags, on: bool| {
            let mode = if on { FlagSetMode::Enable } else { FlagSetMode::Disable };
            // SAFETY: only commits read these two flags, and the thread that commits has the right
            // to write, so one thread at a time calls this. The flags do what `Durability`
            // documents about crashes.
            unsafe { self.env.set_flags(flag, mode) }.map_err(|e| self.error("durability", e))
        };
        set(EnvFlags::NO_META_SYNC, durability == Durability::Group)?;
        set(EnvFlags::NO_SYNC, durability == Durability::None)?;
        *write_guard.durability = durability;
        Ok(())
    }

    /// Syncs everything that was committed.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.check()?;
        let _guard = self.enter_barrier()?;
        self.env.force_sync().map_err(|e| self.error("sync", e))
    }

    /// Writes a copy of the state of one transaction. Errors of writing name `destination`.
    pub(crate) fn copy(&self, file: &File, destination: &Path, compact: bool) -> Result<()> {
        // Begins a transaction first: the one that LMDB begins would not follow a map that another
        // process enlarged.
        let (_txn, _guard) = self.read()?;
        Self::copy_environment(&self.env, file, destination, compact)
    }

    /// Writes a copy of an environment. Its pages are mapped, so an I/O error is an error of
    /// writing, and names `destination`.
    pub(crate) fn copy_environment(
        env: &Env<WithoutTls>,
        file: &File,
        destination: &Path,
        compact: bool,
    ) -> Result<()> {
        use heed::CompactionOption::{Disabled, Enabled};
        let mut file = file.try_clone().map_err(|e| Error::io(destination, "copy to", e))?;
        let copied = env.copy_to_file(&mut file, if compact { Enabled } else { Disabled });
        copied.map_err(|e| Error::of(destination, "copy to", e))
    }

    /// Enlarges the map before it is full, within the limits. The caller has the right to write.
    fn ensure_headroom(&self) -> Result<()> {
        let info = self.info()?;
        let (used, map) = (self.used(&info), info.map_size as u64);
        if map.saturating_sub(used) >= HEADROOM.min(map / 8) {
            return Ok(());
        }
        self.grow(map, used)
    }

    /// Doubles the map, within the limits. Does nothing if it cannot grow: the transaction may
    /// still fit.
    fn grow(&self, map: u64, used: u64) -> Result<()> {
        let wanted = map.saturating_mul(2).max(used + MIN_FREE_BYTES).min(Options::MAX_RESERVE);
        let wanted = self.limit.map_or(wanted, |limit| wanted.min(page_multiple(limit)));
        if wanted <= map {
            return Ok(());
        }
        self.move_map(map, wanted).map(drop)
    }

    /// Grows the map after a transaction found it full. Returns whether it is larger now, so that a
    /// retry may succeed.
    pub(crate) fn grow_after_full(&self) -> Result<bool> {
        let info = self.info()?;
        let before = info.map_size as u64;
        self.grow(before, self.used(&info))?;
        Ok(self.info()?.map_size as u64 > before)
    }

    /// Adopts the size that another process gave the map, after a transaction found that the map of
    /// `map` bytes is too small.
    fn adopt_map_size(&self, map: usize) -> Result<()> {
        if self.move_map(map as u64, 0)? {
            return Ok(());
        }
        let max = self.env.info().map_size as u64;
        Err(Error::Full { max, cause: FullCause::Transactions })
    }

    /// Moves the map, unless another thread has moved it from `before` bytes meanwhile. A size of 0
    /// means the size in the file. Returns false if transactions stayed open for too long.
    fn move_map(&self, before: u64, size: u64) -> Result<bool> {
        let failed = *lock(&self.failed_growth);
        let recently = failed.is_some_and(|when| when.elapsed() < RETRY_PERIOD);
        let patience = if recently { self.patience.min(RETRY_PATIENCE) } else { self.patience };
        let moved = self.barrier.run_exclusive(patience, || {
            if self.env.info().map_size as u64 != before {
                return Ok(());
            }
            self.mapping.forget();
            // SAFETY: no transaction of this process is open: the barrier is closed and all have
            // left.
            let moved = unsafe { self.env.resize(size as usize) };
            if moved.is_err() {
                // LMDB unmapped the old map before it failed to map the new one.
                self.broken.store(true, Ordering::SeqCst);
            }
            moved
        });
        *lock(&self.failed_growth) = if moved.is_some() { None } else { Some(Instant::now()) };
        match moved {
            Some(Ok(())) => Ok(true),
            Some(Err(e)) => Err(self.error("move the map", e)),
            None => Ok(false),
        }
    }

    fn used(&self, info: &EnvInfo) -> u64 {
        (info.last_page_number as u64 + 1) * u64::from(self.page_size)
    }

    pub(crate) fn page_size(&self) -> u32 {
        self.page_size
    }

    /// Returns the state of the memory map.
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values behind these locks are consistent after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
