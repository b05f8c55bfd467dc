//! What the live page shows of a store beside its metrics: its file and its tables.

use nuthatch_listen::{LiveRow, LiveTable};
use nuthatch_store::{Result, Store, TableStat};

/// Maximum number of tables of a store whose rows are counted. Counting opens a table, and a
/// process can open 256 of them by default: the page must not use up those of clients.
const MAX_COUNTED_TABLES: usize = 200;

/// Returns the tables of the page. A store that cannot be read has none.
pub(super) fn tables(store: &Store) -> Vec<LiveTable> {
    read(store).map(|table| vec![table]).unwrap_or_default()
}

fn read(store: &Store) -> Result<LiveTable> {
    let stat = store.stat()?;
    let names = store.table_names()?;
    let mut rows = vec![row("", &store.table_stat(&store.main_table())?, stat.page_bytes)];
    if names.len() <= MAX_COUNTED_TABLES {
        for name in names.iter().take(LiveTable::MAX_ROWS - 1) {
            // Another process may have removed it.
            if let Some(table) = store.find_table(name)? {
                rows.push(row(name, &store.table_stat(&table)?, stat.page_bytes));
            }
        }
    }
    let summary = vec![
        ("tables", (names.len() as u64).into()),
        ("file_bytes", stat.file_bytes.into()),
        ("used_bytes", stat.used_bytes.into()),
        ("free_bytes", stat.free_bytes.into()),
        ("map_bytes", stat.map_bytes.into()),
        ("readers", u64::from(stat.readers).into()),
        ("transaction", stat.transaction.into()),
    ];
    Ok(LiveTable { name: "store_tables", summary, rows })
}

fn row(name: &str, stat: &TableStat, page_bytes: u64) -> LiveRow {
    let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
    let name = if name.is_empty() { "(main)" } else { name };
    vec![
        ("table", name.into()),
        ("rows", stat.entries.into()),
        ("bytes", (pages * page_bytes).into()),
        ("depth", u64::from(stat.depth).into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_listen::LiveValue;
    use nuthatch_store::Options;

    #[test]
    fn tables_have_their_rows_and_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), &Options::new().create(true)).expect("a store");
        let users = store.table("users").expect("a table");
        store.put(&users, b"k", b"v").expect("written");
        let [table] = tables(&store).try_into().expect("one table");
        let users = table.rows.iter().find(|row| row[0].1 == "users".into()).expect("a row");
        assert_eq!(users[1], ("rows", LiveValue::Number(1.0)));
        assert!(matches!(users[2], ("bytes", LiveValue::Number(bytes)) if bytes >= 4096.0));
        assert_eq!(table.summary[0], ("tables", LiveValue::Number(1.0)));
    }
}
