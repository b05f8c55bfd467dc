//! Statistics of the store, and its tables.

use super::Shared;
use crate::error::Result;
use crate::messages::convert;
use crate::messages::proto;
use nuthatch_store::{Stat, Table, TableStat};

pub(super) fn stat(shared: &Shared) -> Result<proto::StatResponse> {
    let store = &shared.store;
    let names = store.table_names()?;
    let others = names.iter().map(|name| shared.tables.find(name));
    let all = std::iter::once(Ok(store.main_table())).chain(others);
    let tables = all.map(|table| table_stat(shared, &table?)).collect::<Result<_>>()?;
    let oldest_change = store.oldest_change()?;
    let stat = store.stat()?;
    let Stat { page_bytes, map_bytes, used_bytes, file_bytes, free_bytes, .. } = stat;
    let Stat { transaction, readers, max_readers, open_transactions, sequence, .. } = stat;
    Ok(proto::StatResponse {
        page_bytes,
        map_bytes,
        used_bytes,
        file_bytes,
        free_bytes,
        transaction,
        readers,
        max_readers,
        open_transactions,
        sequence,
        oldest_change,
        tables,
    })
}

fn table_stat(shared: &Shared, table: &Table) -> Result<proto::TableStat> {
    let stat = shared.store.table_stat(table)?;
    let TableStat { entries, depth, branch_pages, leaf_pages, overflow_pages } = stat;
    let (name, kind) = (table.name().to_owned(), convert::kind_number(Some(table.kind())));
    Ok(proto::TableStat { name, kind, entries, depth, branch_pages, leaf_pages, overflow_pages })
}

pub(super) fn tables(shared: &Shared) -> Result<proto::TablesResponse> {
    let names = shared.store.table_names()?.into_iter();
    let tables = names.map(|name| {
        let kind = convert::kind_number(Some(shared.tables.find(&name)?.kind()));
        Ok(proto::TableName { name, kind })
    });
    Ok(proto::TablesResponse { tables: tables.collect::<Result<_>>()? })
}

pub(super) fn create_table(
    shared: &Shared,
    request: &proto::CreateTableRequest,
) -> Result<proto::CreateTableResponse> {
    let name = &request.name;
    let table = match convert::kind(request.kind)? {
        Some(kind) => shared.store.table_of(name, kind)?,
        None => shared.store.table(name)?,
    };
    shared.tables.note(&table);
    Ok(proto::CreateTableResponse { kind: convert::kind_number(Some(table.kind())) })
}
