//! A store of either kind: each call as [`Work`], for a store in this process and for a server.

use super::condition::OwnedCondition;
use super::local::{Local, TxnOwner};
use super::remote::Remote;
use super::tables::TableRef;
use super::writes::Writes;
use crate::convert::Value;
use crate::failure::{Failure, Outcome};
use crate::runtime::{CallMode, Work};
use crate::store::results::{Entry, Stat};
use nuthatch_store::{Range, Written};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::path::PathBuf;
use std::sync::Arc;

/// A store in this process or behind a server.
#[derive(Clone)]
pub(crate) enum Engine {
    Local(Arc<Local>),
    Remote(Arc<Remote>),
}

impl Engine {
    pub(crate) fn default_table(&self) -> TableRef {
        match self {
            Self::Local(_) => Local::default_table(),
            Self::Remote(_) => Remote::default_table(),
        }
    }

    /// Returns the folder or the address of the server.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Local(local) => local.path().display().to_string(),
            Self::Remote(remote) => remote.address().to_owned(),
        }
    }

    /// Returns the store in this process; fails for a server, with `operation` in the message.
    pub(crate) fn local(&self, operation: &str) -> Outcome<&Arc<Local>> {
        match self {
            Self::Local(local) => Ok(local),
            Self::Remote(remote) => {
                let address = remote.address();
                let message = format!("{operation} needs the folder of the store, found {address}");
                Err(Failure::argument(message))
            }
        }
    }

    pub(crate) fn get(&self, table: &TableRef, key: &[u8]) -> Work<Option<Value>> {
        match self {
            Self::Local(local) => {
                let (local, table, key) = (Arc::clone(local), table.clone(), key.to_vec());
                Work::blocking(move || Ok(local.get(&table, &key)?.map(Value::Owned)))
            }
            Self::Remote(remote) => remote.get(table, key.to_vec()),
        }
    }

    pub(crate) fn get_many(
        &self,
        table: &TableRef,
        keys: Vec<Vec<u8>>,
    ) -> Work<Vec<Option<Value>>> {
        match self {
            Self::Local(local) => {
                let (local, table) = (Arc::clone(local), table.clone());
                Work::blocking(move || local.get_many(&table, &keys))
            }
            Self::Remote(remote) => remote.get_many(table, keys),
        }
    }

    pub(crate) fn entry(&self, table: &TableRef, key: &[u8]) -> Work<Option<Entry>> {
        match self {
            Self::Local(local) => {
                let (local, table, key) = (Arc::clone(local), table.clone(), key.to_vec());
                Work::blocking(move || local.entry(&table, &key))
            }
            Self::Remote(remote) => remote.entry(table, key.to_vec()),
        }
    }

    pub(crate) fn count(&self, table: &TableRef, range: Range) -> Work<u64> {
        match self {
            Self::Local(local) => {
                let (local, table) = (Arc::clone(local), table.clone());
                Work::blocking(move || local.count(&table, &range))
            }
            Self::Remote(remote) => remote.count(table, range),
        }
    }

    pub(crate) fn put(
        &self,
        table: &TableRef,
        key: &[u8],
        value: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Work<Written> {
        match self {
            Self::Local(local) => {
                let mut writes = Writes::default();
                writes.put(None, key, value, expires_at_ms);
                local.write(table, writes)
            }
            Self::Remote(remote) => {
                remote.put(table, (key.to_vec(), value.to_vec()), expires_at_ms)
            }
        }
    }

    pub(crate) fn put_if(
        &self,
        table: &TableRef,
        (key, value): (&[u8], &[u8]),
        expires_at_ms: Option<u64>,
        condition: OwnedCondition,
    ) -> Work<bool> {
        match self {
            Self::Remote(remote) if expires_at_ms.is_none() => {
                remote.put_if(table, (key.to_vec(), value.to_vec()), condition)
            }
            _ => {
                let mut writes = Writes::default();
                writes.check(None, key, condition);
                writes.put(None, key, value, expires_at_ms);
                self.write_if(table, writes)
            }
        }
    }

    pub(crate) fn delete_if(
        &self,
        table: &TableRef,
        key: &[u8],
        condition: OwnedCondition,
    ) -> Work<bool> {
        let mut writes = Writes::default();
        writes.check(None, key, condition);
        writes.delete(None, key);
        self.write_if(table, writes)
    }

    /// Writes if all conditions among the writes are met. The result is whether they were.
    fn write_if(&self, table: &TableRef, writes: Writes) -> Work<bool> {
        let written = self.write(table, writes);
        Work::awaited(async move {
            match written.outcome().await {
                Ok(_) => Ok(true),
                Err(failure) if failure.code() == "condition-unmet" => Ok(false),
                Err(failure) => Err(failure),
            }
        })
    }

    pub(crate) fn delete(&self, table: &TableRef, key: &[u8]) -> Work<bool> {
        match self {
            Self::Local(local) => {
                let mut writes = Writes::default();
                writes.delete(None, key);
                local.write(table, writes).map(|written| written.deleted > 0)
            }
            Self::Remote(remote) => remote.delete(table, key.to_vec()),
        }
    }

    pub(crate) fn delete_range(&self, table: &TableRef, range: Range) -> Work<u64> {
        match self {
            Self::Local(local) => {
                let mut writes = Writes::default();
                writes.delete_range(None, range);
                local.write(table, writes).map(|written| written.deleted)
            }
            Self::Remote(remote) => remote.delete_range(table, range),
        }
    }

    /// Commits the writes as a whole or not at all.
    pub(crate) fn write(&self, table: &TableRef, writes: Writes) -> Work<Written> {
        match self {
            Self::Local(local) => local.write(table, writes),
            Self::Remote(remote) => remote.write(table, writes),
        }
    }

    pub(crate) fn table(&self, table: &TableRef, create: bool) -> Work<()> {
        match self {
            Self::Local(local) => {
                let (local, table) = (Arc::clone(local), table.clone());
                Work::blocking(move || local.table(&table, create))
            }
            Self::Remote(remote) => remote.table(table, create),
        }
    }

    pub(crate) fn tables(&self) -> Work<Vec<(String, bool)>> {
        match self {
            Self::Local(local) => {
                let local = Arc::clone(local);
                Work::blocking(move || local.tables())
            }
            Self::Remote(remote) => remote.tables(),
        }
    }

    pub(crate) fn stat(&self) -> Work<Stat> {
        match self {
            Self::Local(local) => {
                let local = Arc::clone(local);
                Work::blocking(move || local.stat())
            }
            Self::Remote(remote) => remote.stat(),
        }
    }

    pub(crate) fn backup(&self, folder: PathBuf, compact: bool) -> Work<()> {
        match self {
            Self::Local(local) => {
                let local = Arc::clone(local);
                Work::blocking(move || local.backup(&folder, compact))
            }
            Self::Remote(remote) => remote.backup(folder, compact),
        }
    }

    /// Runs `job` on a store in this process; fails for a server.
    pub(crate) fn run_local<T: Send + 'static>(
        &self,
        operation: &str,
        job: impl FnOnce(&Local) -> Outcome<T> + Send + 'static,
    ) -> Work<T> {
        match self.local(operation) {
            Ok(local) => {
                let local = Arc::clone(local);
                Work::blocking(move || job(&local))
            }
            Err(failure) => Work::Done(Err(failure)),
        }
    }

    pub(crate) fn close(&self) -> Work<()> {
        match self {
            Self::Local(local) => {
                let local = Arc::clone(local);
                Work::blocking(move || {
                    local.close();
                    Ok(())
                })
            }
            Self::Remote(remote) => {
                remote.close();
                Work::Done(Ok(()))
            }
        }
    }

    /// Fails if the caller has a write transaction open, since it would wait for itself.
    pub(crate) fn check_not_writing(&self, py: Python<'_>, mode: CallMode) -> PyResult<()> {
        let Self::Local(local) = self else { return Ok(()) };
        let writing = *local.writing();
        match writing {
            Some(owner) if owner == caller(py, mode)? => {
                let message = "a write transaction is open here: write with it, or end it first";
                Err(Failure::new("lmdb", message).raise(py))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the thread and, for asynchronous calls, the task of the caller.
pub(crate) fn caller(py: Python<'_>, mode: CallMode) -> PyResult<TxnOwner> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let task = match mode {
        CallMode::Sync => 0,
        CallMode::Async => CURRENT.import(py, "asyncio", "current_task")?.call0()?.as_ptr().addr(),
    };
    Ok(TxnOwner { thread: std::thread::current().id(), task })
}
