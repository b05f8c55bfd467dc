//! Opening and closing stores and tables.

use super::types::{durability_of, kind_number, kind_of, nuthatch_store, nuthatch_store_table};
use crate::error::{Failure, Result, nuthatch_error};
use crate::handles::{self, HandleObject};
use crate::memory::export_body;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store_engine::{Kind, Options, Store, Table};

/// How long closing waits for threads and calls that are about to end.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// The object of a store's handle.
pub(crate) struct OpenStore {
    pub(crate) store: Store,
    /// Held by all open objects that keep the file open. Tables do not.
    pub(crate) guests: Arc<()>,
}

impl HandleObject for OpenStore {
    const KIND: &str = "a store";
}

/// The object of a table's handle.
pub(crate) struct OpenTable {
    pub(crate) store: Store,
    pub(crate) table: Table,
    /// The handle of the store.
    pub(crate) store_handle: u64,
    /// See [`OpenStore::guests`].
    pub(crate) guests: Weak<()>,
}

impl HandleObject for OpenTable {
    const KIND: &str = "a table";
}

/// Options for opening a store. The usual options are `create` 1 and all other fields zero.
#[repr(C)]
pub struct nuthatch_store_options {
    /// 1: create the store if it is missing. The parent of the folder must exist.
    pub create: u32,
    /// 1: open the store read-only.
    pub read_only: u32,
    /// Durability of commits: `NUTHATCH_STORE_SYNC`, `_GROUP` or `_NO_SYNC`.
    pub durability: u32,
    /// Maximum number of tables that this process opens; 0: 256.
    pub tables: u32,
    /// Maximum number of open read transactions in all processes; 0: 1022.
    pub readers: u32,
    /// How long a write that needs a larger map waits for open transactions to end, in
    /// milliseconds; 0: 5000.
    pub growth_patience_ms: u32,
    /// Address space for the memory map in bytes; 0: 1 TiB. Unused address space takes no memory.
    pub reserve_bytes: u64,
    /// Maximum size of the file in bytes; 0: no limit.
    pub limit_bytes: u64,
    /// 1 opens a folder on a network filesystem, such as NFS or SMB; 0 refuses it with `options`.
    /// Machines do not share the memory maps of a store, so only processes of one machine may use
    /// such a folder.
    pub allow_network_filesystem: u32,
    /// Must be 0.
    pub reserved: u32,
}

fn options_of(options: &nuthatch_store_options) -> Result<Options> {
    let mut made = Options::new()
        .create(options.create != 0)
        .read_only(options.read_only != 0)
        .durability(durability_of(options.durability)?)
        .allow_network_filesystem(options.allow_network_filesystem != 0);
    if options.tables != 0 {
        made = made.tables(options.tables);
    }
    if options.readers != 0 {
        made = made.readers(options.readers);
    }
    if options.growth_patience_ms != 0 {
        made = made.growth_patience(Duration::from_millis(options.growth_patience_ms.into()));
    }
    if options.reserve_bytes != 0 {
        made = made.reserve(options.reserve_bytes);
    }
    if options.limit_bytes != 0 {
        made = made.limit(options.limit_bytes);
    }
    Ok(made)
}

/// Opens the store in a folder. `options` may be null; then the store is created if missing.
/// Returns the handle in `store`. A process can open a folder only once, whatever path it uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open(
    path: *const u8,
    path_len: usize,
    options: *const nuthatch_store_options,
    store: *mut nuthatch_store,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("store", store)?;
        let path = caller.bytes("path", path, path_len)?;
        let options = caller.maybe("options", options)?;
        let options = options.map_or_else(|| Ok(Options::new()), options_of)?;
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let (store, guests) = (Store::open(path, &options)?, Arc::default());
        out.put(handles::create(OpenStore { store, guests }));
        Ok(())
    })
}

/// Closes a store and the handles of its tables. Scans, read transactions and watches of the store
/// that are still open fail with `closed` from now on. Close them, too: the file stays open until
/// the last of them is closed, and rows that they returned stay valid until then. Finish writers
/// before this call; otherwise batches in their queues fail. If nothing else of the store is open,
/// the store can be opened again when this call returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close(
    store: nuthatch_store,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| {
        let closed: Arc<OpenStore> = handles::close(store)?;
        handles::close_all(|table: &OpenTable| table.store_handle == store);
        closed.store.close();
        let is_alone = Arc::strong_count(&closed.guests) == 1;
        let store = closed.store.clone();
        drop(closed);
        if is_alone {
            // Threads of the store are about to end, and calls of other threads about to return.
            store.close_within(LAST_CALLS);
        }
        Ok(())
    })
}

/// Opens a table by its name, and creates it if it is missing. `kind` is `NUTHATCH_STORE_PLAIN`,
/// `_STAMPED` or `_ANY_KIND`; a table of the other kind fails with `table`. An empty name is the
/// main table. Returns the handle in `table`. Closing the store closes this handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open_table(
    store: nuthatch_store,
    name: *const u8,
    name_len: usize,
    kind: u32,
    table: *mut nuthatch_store_table,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("table", table)?;
        let name = caller.text("name", name, name_len)?;
        let kind = kind_of(kind)?;
        let open: Arc<OpenStore> = handles::find(store)?;
        let table = match kind {
            _ if name.is_empty() && kind != Some(Kind::Stamped) => open.store.main_table(),
            None => open.store.table(name)?,
            Some(kind) => open.store.table_of(name, kind)?,
        };
        let guests = Arc::downgrade(&open.guests);
        let (store, store_handle) = (open.store.clone(), store);
        out.put(handles::create(OpenTable { store, table, store_handle, guests }));
        Ok(())
    })
}

/// Closes the handle of a table. Scans of the table continue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close_table(
    table: nuthatch_store_table,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| handles::close::<OpenTable>(table).map(drop))
}

/// Returns the kind of a table in `kind`: `NUTHATCH_STORE_PLAIN` or `_STAMPED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_table_kind(
    table: nuthatch_store_table,
    kind: *mut u32,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let table = OpenTable::find(table)?;
        caller.out("kind", kind)?.put(kind_number(table.table.kind()));
        Ok(())
    })
}

/// Returns the names of all tables except the main table, in order, each followed by a zero byte.
/// Returns the total number of bytes in `len`. Writes `names` only if `capacity` is at least `len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_table_names(
    store: nuthatch_store,
    names: *mut u8,
    capacity: usize,
    len: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("len", len)?;
        let room = caller.room("names", names, capacity)?;
        let open: Arc<OpenStore> = handles::find(store)?;
        let all: Vec<u8> = open
            .store
            .table_names()?
            .into_iter()
            .flat_map(|name| name.into_bytes().into_iter().chain([0]))
            .collect();
        out.put(all.len());
        if let Some(room) = room.get_mut(..all.len()) {
            room.copy_from_slice(&all);
        }
        Ok(())
    })
}

impl OpenStore {
    pub(crate) fn find(handle: u64) -> Result<Arc<Self>> {
        handles::find(handle)
    }
}

impl OpenTable {
    pub(crate) fn find(handle: u64) -> Result<Arc<Self>> {
        handles::find(handle)
    }

    /// Returns the table if it belongs to this store.
    pub(crate) fn within(&self, store: u64) -> Result<&Table> {
        if self.store_handle == store {
            return Ok(&self.table);
        }
        let expected = format!("{} of this store", Self::KIND);
        Err(Failure::argument("table", &expected, "one of another"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_filesystem_is_allowed_only_if_the_options_say_so() {
        for (given, expected) in [(0, "false"), (1, "true")] {
            let options = nuthatch_store_options {
                create: 1,
                read_only: 0,
                durability: 0,
                tables: 0,
                readers: 0,
                growth_patience_ms: 0,
                reserve_bytes: 0,
                limit_bytes: 0,
                allow_network_filesystem: given,
                reserved: 0,
            };
            let Ok(options) = options_of(&options) else { panic!("valid options") };
            let expected = format!("allow_network_filesystem: {expected}");
            assert!(format!("{options:?}").contains(&expected), "{options:?}");
        }
    }
}
