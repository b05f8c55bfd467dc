//! Items as records, and records as items.

use nuthatch_cache::{Expiry, Item, KeyHash, OnDisk, Write};
use nuthatch_tier::{Entry, Kind, Record};

/// Returns the item of an entry of a directory, as the index has it.
pub(crate) fn on_disk(entry: &Entry) -> OnDisk {
    OnDisk::new(KeyHash::from_u64(entry.hash), entry.place.pack())
}

/// Returns the record of an item, or `None` if a record cannot represent it: it has protocol bits.
pub(crate) fn record_of<'i>(item: &'i Item<'_>, hash: u64) -> Option<Record<'i>> {
    (item.protocol_bits() == 0).then(|| Record {
        key: item.key(),
        value: item.value(),
        hash,
        frequency: item.frequency() as u8,
        expires_ms: item.expires_ms(),
        cas: item.cas(),
        client_flags: Some(item.flags()).filter(|flags| *flags != 0),
        is_compressed: item.is_compressed(),
        ..Record::default()
    })
}

/// Returns the write that stores the item of a record, or `None` if this version does not know its
/// kind.
pub(crate) fn write_of(record: &Record<'_>) -> Option<Write<'static>> {
    let is_known = record.kind == Kind::STRING && record.database == 0;
    let expiry = record.expires_ms.map_or(Expiry::Never, Expiry::At);
    let write = Write::new().expiry(expiry).flags(record.client_flags.unwrap_or(0));
    let write = write.compressed(record.is_compressed);
    let write = record.cas.map_or(write, |cas| write.cas(cas));
    is_known.then_some(write)
}
