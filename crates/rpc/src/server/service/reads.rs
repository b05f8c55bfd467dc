//! Lookups, in a new transaction or in an open one.

use super::Shared;
use crate::error::{Error, Result};
use crate::messages::convert;
use crate::messages::proto;
use crate::server::budget::Charge;
use bytes::Bytes;
use nuthatch_store::{Entry, Read, ReadTxn};

/// The maximum length of a message beyond the values: for each value, and once.
const OVERHEAD_LEN: usize = 64;

pub(super) fn get(shared: &Shared, request: &proto::GetRequest) -> Result<proto::GetResponse> {
    // The table is opened before the transaction, which would not see it otherwise.
    shared.tables.find(&request.table)?;
    get_in(shared, &shared.store.read_owned()?, request)
}

pub(super) fn get_in(
    shared: &Shared,
    txn: &ReadTxn<'static>,
    request: &proto::GetRequest,
) -> Result<proto::GetResponse> {
    let table = shared.tables.find(&request.table)?;
    let found = txn.entry(&table, &request.key)?;
    let _charge = room(shared, found.map_or(0, |entry| entry.value.len()), 1)?;
    let entry = found.map(entry);
    txn.check_readable()?;
    Ok(proto::GetResponse { entry, transaction: txn.id() })
}

pub(super) fn get_many(
    shared: &Shared,
    request: &proto::GetManyRequest,
) -> Result<proto::GetManyResponse> {
    shared.tables.find(&request.table)?;
    get_many_in(shared, &shared.store.read_owned()?, request)
}

pub(super) fn get_many_in(
    shared: &Shared,
    txn: &ReadTxn<'static>,
    request: &proto::GetManyRequest,
) -> Result<proto::GetManyResponse> {
    let table = shared.tables.find(&request.table)?;
    let found = request.keys.iter().map(|key| txn.entry(&table, key));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let bytes = found.iter().flatten().map(|entry| entry.value.len()).sum();
    let _charge = room(shared, bytes, found.len())?;
    let lookups = found.into_iter().map(|found| proto::Lookup { entry: found.map(entry) });
    let lookups = lookups.collect();
    txn.check_readable()?;
    Ok(proto::GetManyResponse { lookups, transaction: txn.id() })
}

pub(super) fn count(shared: &Shared, request: proto::CountRequest) -> Result<proto::CountResponse> {
    let table = shared.tables.find(&request.table)?;
    let txn = shared.store.read()?;
    let count = txn.count(&table, &convert::range(request.range))?;
    Ok(proto::CountResponse { count, transaction: txn.id() })
}

/// Charges the memory of a response with `values` values of `bytes` bytes.
fn room(shared: &Shared, bytes: usize, values: usize) -> Result<Charge> {
    let len = bytes + OVERHEAD_LEN * (values + 1);
    let max = shared.limits.message_bytes + OVERHEAD_LEN * (values + 1);
    if len > max {
        return Err(Error::too_long(len, shared.limits.message_bytes));
    }
    shared.budget.charge(len as u64)
}

fn entry(entry: Entry<'_>) -> proto::Entry {
    let Entry { value, version, expires_at_ms } = entry;
    proto::Entry { value: Bytes::copy_from_slice(value), version, expires_at_ms }
}
