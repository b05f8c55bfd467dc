//! The environment of LMDB: opened, its map moved, its flags set. This file holds unsafe code: heed
//! asks for it where what LMDB trusts could be broken.

use crate::error::{Error, FullCause, Result};
use crate::file::{DATA, corrupt, make_folder, resolve_folder};
use crate::file_check::check_file;
use crate::fork::{self, OfProcess, Owner};
use crate::gate::{Gate, Place};
use crate::links::Links;
use crate::lock_file::StoreLock;
use crate::network;
use crate::options::{Durability, Options};
use crate::pages::Mapping;
use crate::registry::{self, Registration, Waiter};
use crate::removed::{RemovalCheck, check_linked};
use crate::short_write;
use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvInfo, EnvOpenOptions, FlagSetMode, MdbError, RoTxn,
    RwTxn, WithoutTls,
};
use std::fs::File;
use std::io::ErrorKind::OutOfMemory;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A table of bytes.
pub(crate) type Bare = Database<'static, Bytes, Bytes>;

/// A write transaction begins only with so much of the map free, or an eighth of it.
const HEADROOM: u64 = 64 << 20;
/// Room that every map has at least beyond the data.
const LEAST_ROOM: u64 = 16 << 20;
/// For so long after the map could not be moved, whoever tries again has less patience: one
/// transaction that stays open must not make each write wait.
const AFTER_GROWTH_IN_VAIN: Duration = Duration::from_secs(5);
const LESS_PATIENCE: Duration = Duration::from_millis(2);
/// Slots of readers that died are looked for with every so many write transactions.
const LOOK_FOR_STALE_EVERY: u64 = 256;

pub(crate) struct Environment {
    // Ends its guard before the map is unmapped.
    mapping: Mapping,
    // Closed before the lock ends, and both before the store can be opened again: fields are
    // dropped in this order.
    env: OpenEnv,
    lock: Option<StoreLock>,
    registration: Registration,
    /// The file that is mapped, whichever is at its path by now.
    data: (File, PathBuf),
    removal: RemovalCheck,
    path: PathBuf,
    gate: Gate,
    main: Bare,
    read_only: bool,
    limit: Option<u64>,
    patience: Duration,
    /// Held by the one thread of this process that writes; tells what LMDB's flags are.
    writing: Mutex<Durability>,
    /// Which thread that is: one that asked again would wait for itself.
    writer: Mutex<Option<ThreadId>>,
    writes: AtomicU64,
    page_size: u32,
    grown_in_vain: Mutex<Option<Instant>>,
    /// The map could not be mapped again: nothing may touch it.
    broken: AtomicBool,
    closed: AtomicBool,
}

/// An environment of heed. Children made by `fork` forget it.
pub(crate) struct OpenEnv {
    owner: Owner,
    env: ManuallyDrop<Env<WithoutTls>>,
}

impl Deref for OpenEnv {
    type Target = Env<WithoutTls>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.env
    }
}

impl Drop for OpenEnv {
    fn drop(&mut self) {
        if self.owner.is_this() {
            let _registry = registry::lock();
            // SAFETY: it is dropped here alone, once.
            unsafe { ManuallyDrop::drop(&mut self.env) };
        }
    }
}

/// A transaction is open as long as this lives.
pub(crate) struct Pass<'e> {
    gate: &'e Gate,
    place: Place,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.gate.leave(self.place);
    }
}

/// The right to write, among the threads of this process.
pub(crate) struct Turn<'e> {
    set: MutexGuard<'e, Durability>,
    writer: OfProcess<&'e Mutex<Option<ThreadId>>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A child made by `fork` might find it locked by a thread that it does not have.
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
        // Once without the lock: where there is no store, none of its files is created.
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
            gate: Gate::new(),
            main,
            read_only: options.read_only,
            limit: options.limit,
            patience: options.growth_patience,
            writing: Mutex::new(Durability::Sync),
            writer: Mutex::new(None),
            page_size: env.unnamed_database_stat().page_size,
            writes: AtomicU64::new(0),
            grown_in_vain: Mutex::new(None),
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

    /// Fails if the files of the store were removed or replaced, so that what is about to be
    /// committed would be lost. A commit that is not synced checks only now and then.
    pub(crate) fn check_before_commit(&self, turn: &Turn<'_>) -> Result<()> {
        if self.removal.is_due(*turn.set) { self.check_linked() } else { Ok(()) }
    }

    /// Fails if the files of the store were removed or replaced.
    pub(crate) fn check_linked(&self) -> Result<()> {
        check_linked(&self.data.0, &self.data.1)?;
        self.lock.as_ref().map_or(Ok(()), StoreLock::check_linked)
    }

    /// The file of the data, to be read as bytes.
    pub(crate) fn data(&self) -> (&File, &Path) {
        (&self.data.0, &self.data.1)
    }

    pub(crate) fn main(&self) -> Bare {
        self.main
    }

    pub(crate) fn heed(&self) -> &Env<WithoutTls> {
        &self.env
    }

    pub(crate) fn key_most(&self) -> usize {
        self.env.max_key_size()
    }

    #[cold]
    pub(crate) fn error(&self, act: &'static str, error: heed::Error) -> Error {
        match error {
            heed::Error::Mdb(MdbError::MapFull) => {
                Error::Full { most: self.env.info().map_size as u64, cause: self.full_cause() }
            }
            heed::Error::Mdb(MdbError::ReadersFull) => {
                Error::ReadersFull { most: self.env.max_readers() }
            }
            heed::Error::Io(error) => {
                let (file, path) = self.data();
                Error::io(path, act, short_write::reason(error, file, self.page_size))
            }
            error => Error::of(&self.path, act, error),
        }
    }

    fn full_cause(&self) -> FullCause {
        match (self.limit, lock(&self.grown_in_vain).is_some()) {
            (Some(limit), _) if self.env.info().map_size as u64 >= limit => FullCause::Limit,
            (_, true) => FullCause::Transactions,
            _ => FullCause::Addresses,
        }
    }

    /// No new transactions from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Returns what waits until the environment is closed.
    pub(crate) fn waiter(&self) -> Waiter {
        self.registration.waiter()
    }

    /// Fails in a child made by `fork`, which must not use the environment of its parent.
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

    /// Fails if a page of the file could not be read since it was mapped.
    #[inline]
    pub(crate) fn check_readable(&self) -> Result<()> {
        if self.mapping.is_lost() { Err(self.lost()) } else { Ok(()) }
    }

    /// The error of a file that could not be read where it is mapped.
    #[cold]
    fn lost(&self) -> Error {
        let path = self.path.join(DATA);
        let len = self.env.real_disk_size().unwrap_or(0);
        let expected = "the pages that the file had: it was truncated while it was open, or the \
                        disk failed";
        corrupt(&path, len, expected, format!("a file of {len} bytes"))
    }

    /// Transactions of this process that are open.
    pub(crate) fn open_transactions(&self) -> usize {
        self.gate.inside()
    }

    /// Returns whether a thread waits for transactions to end, to move the map.
    #[cfg(test)]
    pub(crate) fn waits_to_grow(&self) -> bool {
        self.gate.is_awaited()
    }

    /// What LMDB tells of the environment. The map stays where it is meanwhile.
    pub(crate) fn info(&self) -> Result<EnvInfo> {
        let _pass = self.pass()?;
        Ok(self.env.info())
    }

    fn pass(&self) -> Result<Pass<'_>> {
        // A child made by `fork` could find the gate shut for ever.
        self.check_process()?;
        let pass = Pass { gate: &self.gate, place: self.gate.enter() };
        // The map may have been lost while the gate was shut.
        self.check()?;
        Ok(pass)
    }

    /// Begins a transaction that reads.
    pub(crate) fn read(&self) -> Result<(RoTxn<'_, WithoutTls>, Pass<'_>)> {
        self.begin("begin to read", Env::read_txn)
    }

    /// Begins a transaction that reads and owns the environment.
    pub(crate) fn read_owned(&self) -> Result<(RoTxn<'static, WithoutTls>, Place)> {
        let (txn, pass) = self.begin("begin to read", |env| env.clone().static_read_txn())?;
        let place = pass.place;
        // Left by `leave`, when the transaction ends.
        std::mem::forget(pass);
        Ok((txn, place))
    }

    /// Ends what `read_owned` began.
    pub(crate) fn leave(&self, place: Place) {
        self.gate.leave(place);
    }

    /// The right to write, which this process has for one thread at a time.
    pub(crate) fn turn(&self) -> Result<Turn<'_>> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.check()?;
        let me = std::thread::current().id();
        if *lock(&self.writer) == Some(me) {
            let message = "this thread has a write transaction open already".to_owned();
            return Err(Error::Lmdb { act: "begin to write", message });
        }
        let turn = Turn { set: lock(&self.writing), writer: OfProcess::new(&self.writer) };
        *lock(&self.writer) = Some(me);
        if self.writes.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_FOR_STALE_EVERY) {
            self.env.clear_stale_readers().map_err(|e| self.error("readers", e))?;
        }
        self.make_room()?;
        Ok(turn)
    }

    /// Begins a transaction that writes.
    pub(crate) fn write<'e>(
        &'e self,
        turn: &mut Turn<'_>,
        durability: Durability,
    ) -> Result<(RwTxn<'e>, Pass<'e>)> {
        self.set_durability(turn, durability)?;
        self.begin("begin to write", Env::write_txn)
    }

    fn begin<'e, T>(
        &'e self,
        act: &'static str,
        begin: impl Fn(&'e Env<WithoutTls>) -> heed::Result<T>,
    ) -> Result<(T, Pass<'e>)> {
        const TRIES: usize = 8;
        for last in (0..TRIES).map(|n| n + 1 == TRIES) {
            let pass = self.pass()?;
            match begin(&self.env) {
                Ok(txn) => return Ok((txn, pass)),
                Err(heed::Error::Mdb(MdbError::MapResized)) if !last => {
                    let map = self.env.info().map_size;
                    drop(pass);
                    self.follow(map)?;
                }
                Err(heed::Error::Mdb(MdbError::ReadersFull)) if !last => {
                    let cleared = self.env.clear_stale_readers();
                    if cleared.map_err(|e| self.error("readers", e))? == 0 {
                        return Err(Error::ReadersFull { most: self.env.max_readers() });
                    }
                }
                Err(error) => return Err(self.error(act, error)),
            }
        }
        Err(Error::io(&self.path, act, std::io::Error::other("the map kept growing elsewhere")))
    }

    /// Sets what commits wait for. Whoever has the turn calls this, so no commit is under way.
    fn set_durability(&self, turn: &mut Turn<'_>, durability: Durability) -> Result<()> {
        if *turn.set == durability {
            return Ok(());
        }
        let set = |flag: EnvFlags, on: bool| {
            let mode = if on { FlagSetMode::Enable } else { FlagSetMode::Disable };
            // SAFETY: only commits look at these two flags, and whoever commits has the turn, so
            // one thread at a time calls this. What `Durability` says of crashes is what the flags
            // do.
            unsafe { self.env.set_flags(flag, mode) }.map_err(|e| self.error("durability", e))
        };
        set(EnvFlags::NO_META_SYNC, durability == Durability::Group)?;
        set(EnvFlags::NO_SYNC, durability == Durability::None)?;
        *turn.set = durability;
        Ok(())
    }

    /// Makes everything that was committed safe.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.check()?;
        let _pass = self.pass()?;
        self.env.force_sync().map_err(|e| self.error("sync", e))
    }

    /// Writes a copy of the state of one moment. Errors of writing name `destination`.
    pub(crate) fn copy(&self, file: &File, destination: &Path, compact: bool) -> Result<()> {
        // A transaction of our own first: LMDB's would not follow a map that another process moved.
        let (_txn, _pass) = self.read()?;
        Self::copy_of(&self.env, file, destination, compact)
    }

    /// Writes a copy of what an environment has. Its pages are mapped, so an I/O error is one of
    /// writing, and names `destination`.
    pub(crate) fn copy_of(
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

    /// Makes the map larger before it is full, as far as it may be. Whoever has the turn calls
    /// this.
    fn make_room(&self) -> Result<()> {
        let info = self.info()?;
        let (used, map) = (self.used(&info), info.map_size as u64);
        if map.saturating_sub(used) >= HEADROOM.min(map / 8) {
            return Ok(());
        }
        self.grow(map, used)
    }

    /// Makes the map twice as large, as far as it may be. Nothing happens where it cannot be: the
    /// transaction may still fit.
    fn grow(&self, map: u64, used: u64) -> Result<()> {
        let wanted = map.saturating_mul(2).max(used + LEAST_ROOM).min(Options::MOST_RESERVE);
        let wanted = self.limit.map_or(wanted, |limit| wanted.min(page_multiple(limit)));
        if wanted <= map {
            return Ok(());
        }
        self.move_map(map, wanted).map(drop)
    }

    /// After a transaction found the map full: whether it is larger now, so that another try pays.
    pub(crate) fn grow_after_full(&self) -> Result<bool> {
        let info = self.info()?;
        let before = info.map_size as u64;
        self.grow(before, self.used(&info))?;
        Ok(self.info()?.map_size as u64 > before)
    }

    /// Takes over the size that another process gave the map, which had `map` bytes when a
    /// transaction found that it is too small.
    fn follow(&self, map: usize) -> Result<()> {
        if self.move_map(map as u64, 0)? {
            return Ok(());
        }
        let most = self.env.info().map_size as u64;
        Err(Error::Full { most, cause: FullCause::Transactions })
    }

    /// Moves the map, unless another thread has moved it from `before` bytes meanwhile. A size of
    /// 0 is the one that the file says. Returns false if transactions stayed open for too long.
    fn move_map(&self, before: u64, size: u64) -> Result<bool> {
        let in_vain = *lock(&self.grown_in_vain);
        let recently = in_vain.is_some_and(|when| when.elapsed() < AFTER_GROWTH_IN_VAIN);
        let patience = if recently { self.patience.min(LESS_PATIENCE) } else { self.patience };
        let moved = self.gate.alone(patience, || {
            if self.env.info().map_size as u64 != before {
                return Ok(());
            }
            self.mapping.forget();
            // SAFETY: no transaction of this process is open: the gate is shut and all have left.
            let moved = unsafe { self.env.resize(size as usize) };
            if moved.is_err() {
                // LMDB gave the old map up before it asked for the new one.
                self.broken.store(true, Ordering::SeqCst);
            }
            moved
        });
        *lock(&self.grown_in_vain) = if moved.is_some() { None } else { Some(Instant::now()) };
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

    /// Where the file is mapped.
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

/// Opens with as many addresses as are asked for, or as many as the system gives.
fn open_mapped(path: &Path, options: &Options, used: u64) -> Result<OpenEnv> {
    // A limit below what is there already keeps it from growing, and nothing else.
    let least = page_multiple(used + if options.limit.is_some() { 0 } else { LEAST_ROOM });
    let mut size = page_multiple(options.first_map()).max(page_multiple(used));
    loop {
        let mut open = EnvOpenOptions::new().read_txn_without_tls();
        open.map_size(size as usize).max_readers(options.readers).max_dbs(options.tables + 4);
        if options.read_only {
            // SAFETY: a map that is not written to asks for nothing.
            unsafe { open.flags(EnvFlags::READ_ONLY) };
        }
        // SAFETY: the two pages that LMDB reads when it opens were checked. Other processes change
        // the file through LMDB alone, as the documentation of `Store` asks for.
        let opened = unsafe { open_env(&open, path) };
        match opened {
            Ok(env) => return Ok(env),
            Err(heed::Error::Io(e)) if e.kind() == OutOfMemory && size / 2 >= least => {
                size = page_multiple(size / 2);
            }
            Err(error) => return Err(Error::of(path, "open", error)),
        }
    }
}

/// Opens an environment that this process does not have open.
///
/// # Safety
/// As for [`EnvOpenOptions::open`].
unsafe fn open_env(options: &EnvOpenOptions<WithoutTls>, folder: &Path) -> heed::Result<OpenEnv> {
    let _registry = registry::lock();
    let links;
    let mut path = folder;
    if heed::env_closing_event(folder).is_some() {
        // heed has another environment open by this path: that of a parent, which a child made by
        // `fork` has inherited, or one whose folder is gone. Through links the path is another.
        links = Links::to(folder)?;
        path = links.path();
    }
    // SAFETY: the caller's.
    let env = unsafe { options.open(path) }?;
    Ok(OpenEnv { owner: Owner::this(), env: ManuallyDrop::new(env) })
}

/// Opens a store for reading without any locks, for whoever has locked it against all others.
pub(crate) fn open_alone(folder: &Path) -> Result<OpenEnv> {
    let options = Options::new().read_only(true);
    let used = check_file(folder, &options)?;
    let mut open = EnvOpenOptions::new().read_txn_without_tls();
    open.map_size(page_multiple(used.max(1)) as usize);
    // SAFETY: nobody writes: the caller holds the lock that every writer takes.
    unsafe { open.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK) };
    // SAFETY: as above, and the pages that LMDB reads when it opens were checked.
    let opened = unsafe { open_env(&open, folder) };
    opened.map_err(|e| Error::of(folder, "open", e))
}

/// Has LMDB alone make an environment.
#[cfg(test)]
pub(crate) fn open_for_test(options: &EnvOpenOptions<heed::WithTls>, folder: &Path) {
    // SAFETY: the folder of a test, which nothing else uses.
    drop(unsafe { options.open(folder) }.expect("an environment"));
}

/// Maps have whole pages, whatever their size.
pub(crate) fn page_multiple(bytes: u64) -> u64 {
    bytes.next_multiple_of(64 << 10)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
