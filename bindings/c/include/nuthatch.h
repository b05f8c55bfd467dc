/*
 * Nuthatch for C. What belongs to the ordered store begins with nuthatch_store.
 *
 * Made from the sources of bindings/c by its tests: change those.
 *
 * Errors. Functions that can fail answer 0, or a code, of which nuthatch_code_name has the name,
 * and take `error`, which may be null: a struct of the caller that is filled when the call fails,
 * and only then. Nothing is answered through other pointers then. No function ends the process, and
 * none lets a panic through.
 *
 * Handles. What is opened is a number, never 0 and never used twice, so a handle that was closed is
 * the error `closed` and nothing worse. What was opened is to be closed. A handle can be used by
 * all threads; one scan, snapshot or watch by one at a time where rows of it are being read.
 *
 * Memory. Nothing that the caller hands over is kept: bytes are copied before a call returns. What
 * the library lends, it lends until the moment that the function names, and then takes it back by
 * itself; it is never written to and never freed by the caller.
 *
 * Lengths count bytes, or the elements of a list. Where one is 0 the pointer beside it may be
 * anything. Other pointers must not be null unless the function says so. Texts are UTF-8; paths are
 * the bytes of the system. Neither has a zero byte at its end.
 *
 * Threads. All functions can be called by any thread, and none has a state for a thread. Those that
 * wait say so; those that read the disk may wait for it.
 *
 * Processes. In a child made by fork, what its parent opened fails with `closed`; the child opens
 * the store itself. No other thread may be in a call of the library while the process forks.
 */


#ifndef NUTHATCH_H
#define NUTHATCH_H

#include <stddef.h>
#include <stdint.h>

// Commits wait for the disk: nothing that was committed is lost.
#define NUTHATCH_STORE_SYNC 0

// A machine that loses power may lose the last commit, none before it.
#define NUTHATCH_STORE_GROUP 1

// A machine that loses power may lose commits, and may damage the store.
#define NUTHATCH_STORE_NO_SYNC 2

// Tables that keep values as they are.
#define NUTHATCH_STORE_PLAIN 0

// Tables that keep a version with each value, and the time it expires.
#define NUTHATCH_STORE_STAMPED 1

// A table of any kind: plain if it has to be made.
#define NUTHATCH_STORE_ANY_KIND 2

// No bound: the range goes on to the end.
#define NUTHATCH_STORE_UNBOUNDED 0

// The key itself belongs to the range.
#define NUTHATCH_STORE_INCLUDED 1

// The key itself does not belong to the range.
#define NUTHATCH_STORE_EXCLUDED 2

// As a start: keys that begin with it. An end holds besides.
#define NUTHATCH_STORE_PREFIX 3

// A scan from the greatest key on.
#define NUTHATCH_STORE_REVERSE 1

// A scan of keys with empty values.
#define NUTHATCH_STORE_KEYS_ONLY 2

// Writes `value` under `key`; `number` is when it expires, in milliseconds since the beginning of
// 1970, and 0 for never.
#define NUTHATCH_STORE_PUT 1

// Deletes `key`, if it is there.
#define NUTHATCH_STORE_DELETE 2

// Deletes all keys of `range`, which must not be null.
#define NUTHATCH_STORE_DELETE_RANGE 3

// Has nothing of the batch happen unless `condition` holds of `key`. Writes before it count.
#define NUTHATCH_STORE_CHECK 4

// The key is not there.
#define NUTHATCH_STORE_ABSENT 1

// The key is there.
#define NUTHATCH_STORE_PRESENT 2

// The key is there with this `value`.
#define NUTHATCH_STORE_EQUALS 3

// The key of a stamped table is there in the version `number`.
#define NUTHATCH_STORE_VERSION 4

// A watch of the next change that is committed.
#define NUTHATCH_STORE_FROM_NOW 0

// A watch of the changes after the one of a number.
#define NUTHATCH_STORE_AFTER 1

// A watch of all changes that are kept.
#define NUTHATCH_STORE_FROM_OLDEST 2

// The key has a new value.
#define NUTHATCH_STORE_CHANGED_PUT 1

// The key was deleted.
#define NUTHATCH_STORE_CHANGED_DELETE 2

// The key expired, and was taken out of the table.
#define NUTHATCH_STORE_CHANGED_EXPIRE 3

// How a store is opened. All zero, with `create` 1, is what most want.
typedef struct {
    // Whether a store is made where there is none. The folder above must be there.
    uint32_t create;
    // Whether it is opened for reading only.
    uint32_t read_only;
    // What commits wait for: `NUTHATCH_STORE_SYNC`, `_GROUP` or `_NO_SYNC`.
    uint32_t durability;
    // How many tables can be open; 0 for 256.
    uint32_t tables;
    // How many read transactions can be open in all processes; 0 for 1022.
    uint32_t readers;
    // How long a map that must move waits for transactions to end, in milliseconds; 0 for 5000.
    uint32_t growth_patience_ms;
    // Bytes of addresses for the map; 0 for 1 TiB. They cost nothing until there is data.
    uint64_t reserve_bytes;
    // The most that the file may grow to, in bytes; 0 for no limit.
    uint64_t limit_bytes;
    // 1 opens a folder on a network filesystem, such as NFS or SMB; 0 refuses it with `options`.
    // Machines do not share the memory maps of a store, so only processes of one machine may use
    // such a folder.
    uint32_t allow_network_filesystem;
    // Nothing.
    uint32_t reserved;
} nuthatch_store_options;

// An open store.
typedef uint64_t nuthatch_store;

// Why a call failed. Filled when it did, and left alone otherwise.
typedef struct {
    // What the call answered: one of `NUTHATCH_`..., or 0.
    int32_t code;
    // The number of the operating system's error, or 0.
    int32_t system;
    // For `condition-unmet`: which write of the batch it was, counted from zero.
    uint64_t write;
    // A text for people in UTF-8, with a zero byte at its end. Long ones are cut.
    uint8_t message[488];
} nuthatch_error;

// A table of an open store.
typedef uint64_t nuthatch_store_table;

// What there is of a key.
typedef struct {
    // The value; null where the key is missing, or did not fit.
    const uint8_t *value;
    // Bytes of the value, also where it did not fit.
    uint64_t value_len;
    // The number of the change that wrote it; 0 in a plain table.
    uint64_t version;
    // When it expires, in milliseconds since the beginning of 1970; 0 for never.
    uint64_t expires_at_ms;
    // Whether the key is there.
    uint32_t found;
    // Whether the table is stamped, and so `version` one.
    uint32_t is_stamped;
} nuthatch_store_entry;

// Which keys. All zero is all keys.
typedef struct {
    // The lower bound; not read when there is none.
    const uint8_t *start;
    // Its length in bytes.
    size_t start_len;
    // The upper bound; not read when there is none.
    const uint8_t *end;
    // Its length in bytes.
    size_t end_len;
    // What `start` is: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED`, `_EXCLUDED` or `_PREFIX`.
    uint32_t start_bound;
    // What `end` is: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED` or `_EXCLUDED`.
    uint32_t end_bound;
} nuthatch_store_range;

// One state of a store.
typedef uint64_t nuthatch_store_snapshot;

// A key to be looked up.
typedef struct {
    // Its bytes.
    const uint8_t *key;
    // How many.
    size_t key_len;
} nuthatch_store_key;

// What a scan reads. All zero is all rows, forward.
typedef struct {
    // The keys.
    nuthatch_store_range range;
    // So many rows at most, where `has_limit` is not 0.
    uint64_t limit;
    // After how many bytes of keys and values a batch ends; 0 for 4 MiB.
    uint64_t batch_bytes;
    // How many rows a batch has, at most; 0 for 4096.
    uint32_t batch_rows;
    // `NUTHATCH_STORE_REVERSE` and `NUTHATCH_STORE_KEYS_ONLY`, added up.
    uint32_t flags;
    // Whether there is a limit.
    uint32_t has_limit;
    // Must be 0.
    uint32_t reserved;
} nuthatch_store_scan_options;

// A row, where it lies.
typedef struct {
    // The key.
    const uint8_t *key;
    // The value; anything where it has no bytes.
    const uint8_t *value;
    // Bytes of the key.
    uint32_t key_len;
    // Bytes of the value.
    uint32_t value_len;
} nuthatch_store_row;

// A scan that is read batch by batch.
typedef uint64_t nuthatch_store_scan;

// How a writer groups batches. All zero is what most want.
typedef struct {
    // How many batches share a transaction, at most; 0 for 4096.
    uint32_t group_batches;
    // What commits wait for: `NUTHATCH_STORE_SYNC`, `_GROUP` or `_NO_SYNC`.
    uint32_t durability;
    // How many bytes share a transaction, at most; 0 for 16 MiB.
    uint64_t group_bytes;
    // How many bytes can wait; 0 for 64 MiB.
    uint64_t queue_bytes;
    // How long a group waits to become larger, in milliseconds: 0 for not at all.
    uint32_t linger_ms;
    // Whether all batches of a group fail where one of them does.
    uint32_t fail_together;
} nuthatch_store_writer_options;

// A queue of writes, and the thread that writes them.
typedef uint64_t nuthatch_store_writer;

// One act of a batch. What an act does not need is not read.
typedef struct {
    // The table.
    nuthatch_store_table table;
    // `NUTHATCH_STORE_PUT`, `_DELETE`, `_DELETE_RANGE` or `_CHECK`.
    uint32_t act;
    // Of a check: `NUTHATCH_STORE_ABSENT`, `_PRESENT`, `_EQUALS` or `_VERSION`.
    uint32_t condition;
    // The key.
    const uint8_t *key;
    // Bytes of the key.
    size_t key_len;
    // The value.
    const uint8_t *value;
    // Bytes of the value.
    size_t value_len;
    // When a value expires, or the version of a check.
    uint64_t number;
    // The keys to be deleted.
    const nuthatch_store_range *range;
} nuthatch_store_write;

// What became of writes that were committed.
typedef struct {
    // The transaction they were committed with.
    uint64_t transaction;
    // The number of the last of these changes; a watch can go on after it.
    uint64_t sequence;
    // How many keys they deleted.
    uint64_t deleted;
} nuthatch_store_written;

// The acknowledgement of a batch.
typedef struct {
    // What the batch was submitted with.
    uint64_t tag;
    // Where it was written, if it was.
    nuthatch_store_written written;
    // Why it was not. Its `code` is 0 where it was, and only `code` is written then.
    nuthatch_error error;
} nuthatch_store_ack;

// A watch of changes.
typedef uint64_t nuthatch_store_watch;

// A committed change.
typedef struct {
    // Its number: greater than those of all changes before it.
    uint64_t sequence;
    // The transaction it belongs to.
    uint64_t transaction;
    // When the value expires, in milliseconds since the beginning of 1970; 0 for never.
    uint64_t expires_at_ms;
    // The name of the table, in UTF-8 without a zero byte; of no bytes for the main table.
    const uint8_t *table;
    // The key.
    const uint8_t *key;
    // The new value.
    const uint8_t *value;
    // Bytes of the name.
    uint32_t table_len;
    // Bytes of the key.
    uint32_t key_len;
    // Bytes of the value.
    uint64_t value_len;
    // `NUTHATCH_STORE_CHANGED_PUT`, `_DELETE` or `_EXPIRE`.
    uint32_t act;
    // 0.
    uint32_t reserved;
} nuthatch_store_change;

// What a store tells of itself.
typedef struct {
    // Bytes of a page.
    uint64_t page_bytes;
    // Bytes of the addresses that the map has.
    uint64_t map_bytes;
    // Bytes up to the last page that is in use.
    uint64_t used_bytes;
    // Bytes of the file.
    uint64_t file_bytes;
    // Bytes of pages that can be used again.
    uint64_t free_bytes;
    // The last transaction that was committed.
    uint64_t transaction;
    // Transactions that are open in this process.
    uint64_t open_transactions;
    // The number of the last change.
    uint64_t sequence;
    // The number of the oldest change that is kept, where `keeps_changes` is not 0.
    uint64_t oldest_change;
    // Slots of readers in use, or used before, in all processes.
    uint32_t readers;
    // Slots of readers that there are.
    uint32_t readers_most;
    // Whether changes are kept.
    uint32_t keeps_changes;
    // 0.
    uint32_t reserved;
} nuthatch_store_stat;

// What a table tells of itself.
typedef struct {
    // Rows, those among them that have expired and were not swept yet.
    uint64_t entries;
    // Pages that lead to others.
    uint64_t branch_pages;
    // Pages with rows.
    uint64_t leaf_pages;
    // Pages with long values.
    uint64_t overflow_pages;
    // Levels of the tree.
    uint32_t depth;
    // 0.
    uint32_t reserved;
} nuthatch_store_table_stat;

// How far long work is: done, and all that is to be done.
typedef void (*nuthatch_progress)(void *user, uint64_t done, uint64_t all);

// What a store has all pages of which were checked.
typedef struct {
    // The transaction whose state was verified.
    uint64_t transaction;
    // Pages of the file.
    uint64_t pages;
    // Pages that can be used again.
    uint64_t free_pages;
    // Pages that are neither in use nor free: lost room, and no damage. LMDB refuses to compact
    // such a file.
    uint64_t lost_pages;
    // Tables, the main one among them.
    uint64_t tables;
    // Rows of all tables.
    uint64_t entries;
} nuthatch_store_verified;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The name of a code, such as `full`: those of `testdata/store/errors.csv`, and `argument`,
// `handle` and `panic`. `unknown` for other numbers, `ok` for 0. Lives as long as the process.
const char *nuthatch_code_name(int32_t code);

// The version of this library, such as `0.1.0`. Lives as long as the process.
const char *nuthatch_version(void);

// Opens the store in a folder. `options` may be null: a store is made where there is none then.
// Answers its handle through `store`. A process opens a folder once, by whichever path.
int32_t nuthatch_store_open(const uint8_t *path,
                            size_t path_len,
                            const nuthatch_store_options *options,
                            nuthatch_store *store,
                            nuthatch_error *error);

// Closes a store, and the handles of its tables. Scans, snapshots and watches of it that are still
// open fail from now on, with `closed`, and are to be closed as well: the file is let go of when
// the last of them is. Rows that were handed out stay where they are until then. Writers are to be
// finished before: what waits in them fails otherwise. Where nothing is open any more, the store
// can be opened again when this returns.
int32_t nuthatch_store_close(nuthatch_store store, nuthatch_error *error);

// Opens a table by its name, and makes it if it is not there. `kind` is `NUTHATCH_STORE_PLAIN`,
// `_STAMPED` or `_ANY_KIND`; a table of the other kind is refused with `table`. An empty name is
// the main table. Answers its handle through `table`, which is closed with the store.
int32_t nuthatch_store_open_table(nuthatch_store store,
                                  const uint8_t *name,
                                  size_t name_len,
                                  uint32_t kind,
                                  nuthatch_store_table *table,
                                  nuthatch_error *error);

// Closes the handle of a table before its store is closed. Scans of it go on.
int32_t nuthatch_store_close_table(nuthatch_store_table table, nuthatch_error *error);

// What a table keeps with each value: `NUTHATCH_STORE_PLAIN` or `_STAMPED`, through `kind`.
int32_t nuthatch_store_table_kind(nuthatch_store_table table,
                                  uint32_t *kind,
                                  nuthatch_error *error);

// The names of all tables in order, without the main one, each with a zero byte behind it. Their
// bytes altogether are answered through `len`; they are written where `capacity` has room for all
// of them.
int32_t nuthatch_store_table_names(nuthatch_store store,
                                   uint8_t *names,
                                   size_t capacity,
                                   size_t *len,
                                   nuthatch_error *error);

// Looks a key up. What there is of it is answered through `entry`; a missing key is no error. The
// value is copied to `value` where `capacity` has room for it; where it has not, `entry.value` is
// null and `entry.value_len` tells what is needed.
int32_t nuthatch_store_get(nuthatch_store_table table,
                           const uint8_t *key,
                           size_t key_len,
                           uint8_t *value,
                           size_t capacity,
                           nuthatch_store_entry *entry,
                           nuthatch_error *error);

// How many keys of a range are there, through `count`. `range` may be null, for all keys.
int32_t nuthatch_store_count(nuthatch_store_table table,
                             const nuthatch_store_range *range,
                             uint64_t *count,
                             nuthatch_error *error);

// Begins to read one state of a store, which stays the same whatever is written. It keeps pages
// from being used again: close it soon. Any thread may use it, one at a time or several. Answers
// its handle through `snapshot`, and, unless they are null, the number of the last transaction
// that it sees and that of the last change.
int32_t nuthatch_store_open_snapshot(nuthatch_store store,
                                     nuthatch_store_snapshot *snapshot,
                                     uint64_t *transaction,
                                     uint64_t *sequence,
                                     nuthatch_error *error);

// Ends a snapshot. Nothing that it lent may be read from now on.
int32_t nuthatch_store_close_snapshot(nuthatch_store_snapshot snapshot, nuthatch_error *error);

// Looks many keys up in a snapshot: what there is of the first is answered in `entries[0]`, and so
// on. The values lie where they are in the store, and can be read until the snapshot is closed.
int32_t nuthatch_store_snapshot_get(nuthatch_store_snapshot snapshot,
                                    nuthatch_store_table table,
                                    const nuthatch_store_key *keys,
                                    nuthatch_store_entry *entries,
                                    size_t count,
                                    nuthatch_error *error);

// The first rows of a scan in a snapshot, `capacity` of them at most, and how many there are
// through `count`: fewer only where there are no more, or where `batch_bytes` of the options is
// reached. The rest is asked for with the last key as an excluded bound. Rows lie where they are
// in the store, and can be read until the snapshot is closed.
int32_t nuthatch_store_snapshot_rows(nuthatch_store_snapshot snapshot,
                                     nuthatch_store_table table,
                                     const nuthatch_store_scan_options *options,
                                     nuthatch_store_row *rows,
                                     size_t capacity,
                                     size_t *count,
                                     nuthatch_error *error);

// Opens a scan, which begins with the first batch that is asked for, in a transaction of its own.
// `options` may be null, for all rows. Answers its handle through `scan`.
int32_t nuthatch_store_open_scan(nuthatch_store_table table,
                                 const nuthatch_store_scan_options *options,
                                 nuthatch_store_scan *scan,
                                 nuthatch_error *error);

// The next rows of a scan: where the first lies through `rows`, and how many follow one another
// there through `count`, which is 0 after the last. They lie in the store itself, and can be read
// until the next call for this scan, or until it is closed. Closing the store alone takes nothing
// away.
int32_t nuthatch_store_scan_next(nuthatch_store_scan scan,
                                 const nuthatch_store_row **rows,
                                 size_t *count,
                                 nuthatch_error *error);

// Ends a scan and its transaction, at once. Nothing that it lent may be read from now on.
int32_t nuthatch_store_close_scan(nuthatch_store_scan scan, nuthatch_error *error);

// Opens the parts of a scan for `threads` threads, from 1 to 256, all of which see the same state
// of the store. The parts are `ranges`, where there are some, and cut by the store otherwise. Each
// is a scan, which one thread reads at a time and which is closed like any other. How many there
// are is answered through `count`, and their handles, in the order of the whole, in `scans`; where
// `capacity` has no room for all of them none is opened. There are at most 16 for each thread, or
// one for each range. A limit is refused.
int32_t nuthatch_store_open_parts(nuthatch_store_table table,
                                  const nuthatch_store_scan_options *options,
                                  uint32_t threads,
                                  const nuthatch_store_range *ranges,
                                  size_t range_count,
                                  nuthatch_store_scan *scans,
                                  size_t capacity,
                                  size_t *count,
                                  nuthatch_error *error);

// Writes a value under a key, in a transaction of its own, which is committed when this returns.
// Waits for whoever writes, in any process.
int32_t nuthatch_store_put(nuthatch_store_table table,
                           const uint8_t *key,
                           size_t key_len,
                           const uint8_t *value,
                           size_t value_len,
                           nuthatch_error *error);

// Deletes a key, in a transaction of its own, which is committed when this returns. Whether it was
// there is answered through `found`, unless that is null.
int32_t nuthatch_store_delete(nuthatch_store_table table,
                              const uint8_t *key,
                              size_t key_len,
                              uint32_t *found,
                              nuthatch_error *error);

// Writes rows whose keys are above all keys of the table and in order, in one transaction, which
// is committed when this returns. This is faster than putting them: pages are filled to the brim.
// Fails with `unordered` for any other key, and nothing is written.
int32_t nuthatch_store_append(nuthatch_store_table table,
                              const nuthatch_store_row *rows,
                              size_t count,
                              nuthatch_error *error);

// Starts a writer: a thread that writes batches of many threads in groups. `options` may be null.
// Answers its handle through `writer`.
int32_t nuthatch_store_open_writer(nuthatch_store store,
                                   const nuthatch_store_writer_options *options,
                                   nuthatch_store_writer *writer,
                                   nuthatch_error *error);

// Submits writes that happen together or not at all, in order. Copies them, and waits while the
// queue has no room. When the call answers 0, `tag` will come back with an acknowledgement.
int32_t nuthatch_store_submit(nuthatch_store_writer writer,
                              const nuthatch_store_write *batch,
                              size_t count,
                              uint64_t tag,
                              nuthatch_error *error);

// Waits for acknowledgements, so long at most, and takes those that came: into `acks`, `capacity`
// of them at most, in the order of the commits. How many is answered through `count`. Fails with
// `closed` when the writer was finished and all have been taken.
int32_t nuthatch_store_take_acks(nuthatch_store_writer writer,
                                 uint64_t timeout_ms,
                                 nuthatch_store_ack *acks,
                                 size_t capacity,
                                 size_t *count,
                                 nuthatch_error *error);

// Finishes a writer: takes no more batches, and returns when all that were submitted have their
// acknowledgements, which can be taken still.
int32_t nuthatch_store_finish_writer(nuthatch_store_writer writer, nuthatch_error *error);

// Lets go of a writer. What was submitted is written, and nobody hears of it.
int32_t nuthatch_store_close_writer(nuthatch_store_writer writer, nuthatch_error *error);

// Opens a watch of the changes of keys of a range, of one table, or of all where `table` is 0.
// `range` may be null, for all keys. `start` is `NUTHATCH_STORE_FROM_NOW`, `_AFTER`, with the
// number `sequence`, or `_FROM_OLDEST`. The store must keep changes. Answers its handle through
// `watch`.
int32_t nuthatch_store_open_watch(nuthatch_store store,
                                  nuthatch_store_table table,
                                  const nuthatch_store_range *range,
                                  uint32_t start,
                                  uint64_t sequence,
                                  nuthatch_store_watch *watch,
                                  nuthatch_error *error);

// Waits for changes, so long at most. Where the first lies is answered through `changes`, and how
// many follow one another there through `count`, which is 0 when none came. They can be read until
// the next call for this watch, or until it is closed. Fails with `closed` when it was stopped, or
// its store closed.
int32_t nuthatch_store_watch_next(nuthatch_store_watch watch,
                                  uint64_t timeout_ms,
                                  const nuthatch_store_change **changes,
                                  size_t *count,
                                  nuthatch_error *error);

// Stops a watch: whoever waits for changes returns with `closed`. For threads other than the one
// that reads its changes, which closes it.
int32_t nuthatch_store_stop_watch(nuthatch_store_watch watch, nuthatch_error *error);

// Closes a watch. Nothing that it lent may be read from now on.
int32_t nuthatch_store_close_watch(nuthatch_store_watch watch, nuthatch_error *error);

// What a store tells of itself, through `stat`.
int32_t nuthatch_store_stat_of(nuthatch_store store,
                               nuthatch_store_stat *stat,
                               nuthatch_error *error);

// What a table tells of itself, through `stat`.
int32_t nuthatch_store_table_stat_of(nuthatch_store_table table,
                                     nuthatch_store_table_stat *stat,
                                     nuthatch_error *error);

// Keeps the last changes of all tables for watches from now on: so many at most, of so many bytes
// altogether. That holds for all processes, until it is changed. 0 keeps none, and lets go of
// those that are kept.
int32_t nuthatch_store_keep_changes(nuthatch_store store,
                                    uint64_t most,
                                    uint64_t most_bytes,
                                    nuthatch_error *error);

// Makes everything that was committed safe from crashes, however it was committed.
int32_t nuthatch_store_sync(nuthatch_store store, nuthatch_error *error);

// Takes rows out that have expired. How many times of expiry it went through is answered through
// `count`, unless that is null.
int32_t nuthatch_store_sweep(nuthatch_store store, uint64_t *count, nuthatch_error *error);

// Copies a store, in the state of one moment and while others write, into a folder that has none
// yet and is made if it is not there. The copy appears when it is whole. With `compact` not 0,
// free pages are left out, which takes longer.
int32_t nuthatch_store_backup(nuthatch_store store,
                              const uint8_t *folder,
                              size_t folder_len,
                              uint32_t compact,
                              nuthatch_error *error);

// Makes the store in a folder as small as it can be, in its place. No process may have it open.
// Bytes of the file before and after are answered through `before` and `after`, unless they are
// null.
int32_t nuthatch_store_compact(const uint8_t *folder,
                               size_t folder_len,
                               uint64_t *before,
                               uint64_t *after,
                               nuthatch_error *error);

// Checks all pages of a store, as one transaction sees them. `progress`, unless it is null, is
// called on this thread with `user`, the pages that are done and all there are. What was found is
// answered through `verified`, unless that is null. Damage is the error `corrupt`.
int32_t nuthatch_store_verify(nuthatch_store store,
                              nuthatch_progress progress,
                              void *user,
                              nuthatch_store_verified *verified,
                              nuthatch_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUTHATCH_H */
