/*
 * Nuthatch for C. The names of the ordered store begin with nuthatch_store, those of snapshots with
 * nuthatch_snapshot.
 *
 * Generated from the sources in bindings/c by a test: change those.
 *
 * Errors. A function that can fail returns 0 or an error code; nuthatch_code_name returns the name
 * of a code. The parameter `error` may be null. It points to a struct of the caller, which is
 * written only if the call fails. On failure, other output parameters are not written, and the
 * contents of output arrays are unspecified. No function ends the process, and no panic leaves the
 * library.
 *
 * Handles. A handle is a number, never 0 and never reused. Using a closed handle returns the error
 * `closed`; using any other invalid handle returns `handle`. The caller closes every handle. Any
 * thread may use a handle, several of them at once. While rows or changes of a scan, read
 * transaction or watch are being read, no other thread may advance or close it.
 *
 * Objects. Open snapshots, their iterators, readers and scratch buffers have pointers instead, so
 * that a lookup costs no more than in Rust. A pointer is valid until the function that takes it
 * back: nuthatch_snapshot_close and so on. Its use after that is undefined, as in LMDB or SQLite.
 *
 * Memory. The library copies all input before a call returns, and keeps no pointer of the caller. A
 * pointer that the library returns is valid until the call that the comment of the function names.
 * The caller neither writes to such memory nor frees it.
 *
 * Lengths are in bytes, or in elements for arrays. If a length is 0, its pointer is ignored. All
 * other pointers must not be null, unless the function says so. Strings are UTF-8, paths are bytes
 * as the system has them. Neither is terminated by a zero byte, except where a comment says so.
 *
 * Threads. Any thread may call any function. The library keeps nothing for a thread, except a
 * buffer of up to 1 MiB for decompression, which is freed when the thread ends. Functions that wait
 * say so; functions that read the store or a snapshot may wait for the disk.
 *
 * Processes. In a child made by fork, all handles of stores of the parent fail with `closed`; the
 * child opens the store itself. A snapshot writer belongs to the process that created it; a child
 * can read snapshots that the parent opened. No other thread may be inside a call of the library
 * while the process forks.
 */


#ifndef NUTHATCH_H
#define NUTHATCH_H

#include <stddef.h>
#include <stdint.h>

// Error code `io`. A system call failed, such as opening a file that does not exist.
#define NUTHATCH_ERROR_IO 1

// Error code `corrupt`. The bytes of a file contradict its format.
#define NUTHATCH_ERROR_CORRUPT 3

// Error code `closed`. The handle was closed, or the snapshot was stopped.
#define NUTHATCH_ERROR_CLOSED 14

// Error code `not-a-snapshot`. The file does not begin with the magic bytes of a snapshot.
#define NUTHATCH_ERROR_NOT_A_SNAPSHOT 31

// Error code `unsupported`. A newer version wrote the file, or the bytes of a manifest were opened
// without its path.
#define NUTHATCH_ERROR_UNSUPPORTED 32

// Error code `wrong-type`. The value has another type than the requested one.
#define NUTHATCH_ERROR_WRONG_TYPE 33

// Error code `unreadable`. The file was truncated, or its device failed, while it was mapped.
#define NUTHATCH_ERROR_UNREADABLE 34

// Error code `not-durable`. The file was published, but a power failure may restore the old one.
#define NUTHATCH_ERROR_NOT_DURABLE 35

// Error code `duplicate`. Two rows have the same key.
#define NUTHATCH_ERROR_DUPLICATE 36

// Error code `limit`. Input of a writer exceeds a limit of the format.
#define NUTHATCH_ERROR_LIMIT 37

// Error code `argument`. A parameter is invalid, such as a null pointer.
#define NUTHATCH_ERROR_ARGUMENT 100

// Error code `handle`. A number is no handle, or the handle of another kind of object.
#define NUTHATCH_ERROR_HANDLE 101

// Error code `panic`. A bug of the library.
#define NUTHATCH_ERROR_PANIC 102

// Error code `compressed`. The value is compressed, and the caller passed no scratch buffer.
#define NUTHATCH_ERROR_COMPRESSED 103

// A commit waits for the disk. No committed write is lost.
#define NUTHATCH_STORE_SYNC 0

// If the machine loses power, the last commit may be lost, even if it was acknowledged. Earlier
// commits are not lost.
#define NUTHATCH_STORE_GROUP 1

// If the machine loses power, commits may be lost, and the store may be damaged.
#define NUTHATCH_STORE_NO_SYNC 2

// A table whose rows are a key and a value.
#define NUTHATCH_STORE_PLAIN 0

// A table whose rows also have a version and a time of expiry.
#define NUTHATCH_STORE_STAMPED 1

// A table of any kind. It is created as a plain table if it is missing.
#define NUTHATCH_STORE_ANY_KIND 2

// No bound.
#define NUTHATCH_STORE_UNBOUNDED 0

// The range includes the key of the bound.
#define NUTHATCH_STORE_INCLUDED 1

// The range excludes the key of the bound.
#define NUTHATCH_STORE_EXCLUDED 2

// For `start_bound` only: the range has the keys that begin with `start`. The upper bound applies,
// too.
#define NUTHATCH_STORE_PREFIX 3

// Scan flag: in descending order of keys.
#define NUTHATCH_STORE_REVERSE 1

// Scan flag: keys only; values are empty.
#define NUTHATCH_STORE_KEYS_ONLY 2

// Writes `value` to `key`. `number` is the time of expiry in milliseconds since 1970; 0: never.
#define NUTHATCH_STORE_PUT 1

// Deletes `key` if it exists.
#define NUTHATCH_STORE_DELETE 2

// Deletes all keys of `range`, which must not be null.
#define NUTHATCH_STORE_DELETE_RANGE 3

// Cancels the whole batch unless `condition` holds for `key`, evaluated after the preceding writes
// of the batch.
#define NUTHATCH_STORE_CHECK 4

// Condition: the key does not exist.
#define NUTHATCH_STORE_ABSENT 1

// Condition: the key exists.
#define NUTHATCH_STORE_PRESENT 2

// Condition: the key has this `value`.
#define NUTHATCH_STORE_EQUALS 3

// Condition: the key of a stamped table has the version `number`.
#define NUTHATCH_STORE_VERSION 4

// A watch that begins with the next committed change.
#define NUTHATCH_STORE_FROM_NOW 0

// A watch that begins after the change with the number `sequence`.
#define NUTHATCH_STORE_AFTER 1

// A watch that begins with the oldest kept change.
#define NUTHATCH_STORE_FROM_OLDEST 2

// Kind of a change: the key has a new value.
#define NUTHATCH_STORE_CHANGED_PUT 1

// Kind of a change: the key was deleted.
#define NUTHATCH_STORE_CHANGED_DELETE 2

// Kind of a change: the key expired and was removed from the table.
#define NUTHATCH_STORE_CHANGED_EXPIRE 3

// Type of the result of a lookup if the key is missing.
#define NUTHATCH_SNAPSHOT_ABSENT 0

// Type of a value: bytes.
#define NUTHATCH_SNAPSHOT_BYTES 1

// Type of a value: text in UTF-8.
#define NUTHATCH_SNAPSHOT_STRING 2

// Type of a value: 0 or 1.
#define NUTHATCH_SNAPSHOT_BOOL 3

// Type of a value: a signed integer of 64 bits.
#define NUTHATCH_SNAPSHOT_I64 4

// Type of a value: a float of 64 bits.
#define NUTHATCH_SNAPSHOT_F64 5

// Type of a value: a list with at least one signed integer of 64 bits.
#define NUTHATCH_SNAPSHOT_I64_LIST 6

// Type of a value: a list with at least one float of 64 bits.
#define NUTHATCH_SNAPSHOT_F64_LIST 7

// Type of a value: a list with at least one float of 32 bits.
#define NUTHATCH_SNAPSHOT_F32_LIST 8

// Type of a value: a list with at least one string in UTF-8.
#define NUTHATCH_SNAPSHOT_STRING_LIST 9

// Type of a value: a list without elements. Typed lookups of any list type return it as a list of
// that type with the length 0.
#define NUTHATCH_SNAPSHOT_EMPTY_LIST 10

// The file is mapped and read on demand. All processes share its pages.
#define NUTHATCH_SNAPSHOT_MAPPED 0

// The file is mapped, and opening it reads and maps every page.
#define NUTHATCH_SNAPSHOT_POPULATED 1

// The file is copied into memory of this process, on huge pages if the system provides them. Gives
// the fastest lookups in large files. The copy does not depend on later changes of the file.
#define NUTHATCH_SNAPSHOT_HUGE_PAGES 2

// For `poll_interval_ms`: only `nuthatch_snapshot_watch_refresh` polls.
#define NUTHATCH_SNAPSHOT_NO_POLLING UINT32_MAX

// If two rows have the same key, `nuthatch_snapshot_writer_finish` fails with `duplicate`.
#define NUTHATCH_SNAPSHOT_DUPLICATE_ERROR 0

// The row that was added first is kept.
#define NUTHATCH_SNAPSHOT_DUPLICATE_FIRST 1

// The row that was added last is kept.
#define NUTHATCH_SNAPSHOT_DUPLICATE_LAST 2

// Values are not compressed: all are read in place.
#define NUTHATCH_SNAPSHOT_COMPRESSION_NONE 0

// Each value is compressed by itself with zstd, with a dictionary that is trained on the values.
// Stored uncompressed are booleans, single numbers, values below 32 bytes or above 16 MiB, and
// values that would shrink by less than an eighth.
#define NUTHATCH_SNAPSHOT_COMPRESSION_ZSTD 1

// An open snapshot.
//
// It has a count of references. `nuthatch_snapshot_open` returns it with one reference,
// `nuthatch_snapshot_retain` adds one, and `nuthatch_snapshot_close` releases one; an iterator has
// one until it is closed. When the last reference is released, the file is unmapped and the
// pointer becomes invalid. Any number of threads may use the pointer at once. A thread that reads
// while another thread may close needs a reference of its own.
typedef struct nuthatch_snapshot nuthatch_snapshot;

// An iterator over the entries of a snapshot. One thread at a time uses it.
typedef struct nuthatch_snapshot_iterator nuthatch_snapshot_iterator;

// A reader of a watch. One thread at a time may use it.
typedef struct nuthatch_snapshot_reader nuthatch_snapshot_reader;

// A buffer for decompressed values, which any snapshot can use. One thread at a time may use it.
// It grows to the largest value that it held, at most 16 MiB. After `nuthatch_snapshot_get_many`,
// it holds all compressed values of that call.
typedef struct nuthatch_snapshot_scratch nuthatch_snapshot_scratch;

// Options for opening a store. The usual options are `create` 1 and all other fields zero.
typedef struct {
    // 1: create the store if it is missing. The parent of the folder must exist.
    uint32_t create;
    // 1: open the store read-only.
    uint32_t read_only;
    // Durability of commits: `NUTHATCH_STORE_SYNC`, `_GROUP` or `_NO_SYNC`.
    uint32_t durability;
    // Maximum number of tables that this process opens; 0: 256.
    uint32_t tables;
    // Maximum number of open read transactions in all processes; 0: 1022.
    uint32_t readers;
    // How long a write that needs a larger map waits for open transactions to end, in
    // milliseconds; 0: 5000.
    uint32_t growth_patience_ms;
    // Address space for the memory map in bytes; 0: 1 TiB. Unused address space takes no memory.
    uint64_t reserve_bytes;
    // Maximum size of the file in bytes; 0: no limit.
    uint64_t limit_bytes;
    // 1 opens a folder on a network filesystem, such as NFS or SMB; 0 refuses it with `options`.
    // Machines do not share the memory maps of a store, so only processes of one machine may use
    // such a folder.
    uint32_t allow_network_filesystem;
    // Must be 0.
    uint32_t reserved;
} nuthatch_store_options;

// A handle of an open store.
typedef uint64_t nuthatch_store;

// Why a call failed. Written only if the call fails.
typedef struct {
    // The error code that the call returned.
    int32_t code;
    // The error number of the operating system (`errno`), or 0.
    int32_t system;
    // For `not-a-snapshot`, `unsupported` and `corrupt` of a snapshot: the offset in the file, in
    // bytes. For `condition-unmet`: the index of the condition in the batch. For `duplicate`: the
    // number of the second row with the key. For `nuthatch_snapshot_writer_insert_rows`: the index
    // of the row in that call. Indexes and numbers begin with 0. Otherwise 0.
    uint64_t position;
    // A readable message in UTF-8, terminated by a zero byte. A longer message is truncated.
    uint8_t message[488];
} nuthatch_error;

// A handle of a table of an open store.
typedef uint64_t nuthatch_store_table;

// The result of a lookup.
typedef struct {
    // The value; null if the key is missing or the value does not fit.
    const uint8_t *value;
    // Length of the value in bytes, even if it does not fit.
    uint64_t value_len;
    // The number of the change that wrote the value; 0 in a plain table.
    uint64_t version;
    // Time of expiry in milliseconds since 1970; 0: never.
    uint64_t expires_at_ms;
    // 1 if the key exists, otherwise 0.
    uint32_t found;
    // 1 if the table is stamped, so that `version` is valid; otherwise 0.
    uint32_t is_stamped;
} nuthatch_store_entry;

// A range of keys. All fields zero: all keys.
typedef struct {
    // The lower bound. Ignored if unbounded.
    const uint8_t *start;
    // Length of `start` in bytes.
    size_t start_len;
    // The upper bound. Ignored if unbounded.
    const uint8_t *end;
    // Length of `end` in bytes.
    size_t end_len;
    // Kind of the lower bound: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED`, `_EXCLUDED` or `_PREFIX`.
    uint32_t start_bound;
    // Kind of the upper bound: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED` or `_EXCLUDED`.
    uint32_t end_bound;
} nuthatch_store_range;

// A handle of a read transaction: one state of a store.
typedef uint64_t nuthatch_store_read_transaction;

// A key to look up.
typedef struct {
    // The key.
    const uint8_t *key;
    // Length of the key in bytes.
    size_t key_len;
} nuthatch_store_key;

// Options of a scan. All fields zero: all rows, in ascending order of keys.
typedef struct {
    // The range of keys.
    nuthatch_store_range range;
    // Maximum number of rows, if `has_limit` is not 0.
    uint64_t limit;
    // A batch ends when its keys and values have this many bytes; 0: 4 MiB. It has at least one
    // row.
    uint64_t batch_bytes;
    // Maximum number of rows in a batch; 0: 4096.
    uint32_t batch_rows;
    // The sum of `NUTHATCH_STORE_REVERSE` and `NUTHATCH_STORE_KEYS_ONLY`, or one of them, or 0.
    uint32_t flags;
    // 1 if `limit` applies, otherwise 0.
    uint32_t has_limit;
    // Must be 0.
    uint32_t reserved;
} nuthatch_store_scan_options;

// A row. Its pointers refer to memory of the store, or of the caller in `nuthatch_store_append`.
typedef struct {
    // The key.
    const uint8_t *key;
    // The value. Ignore the pointer if `value_len` is 0.
    const uint8_t *value;
    // Length of the key in bytes.
    uint32_t key_len;
    // Length of the value in bytes.
    uint32_t value_len;
} nuthatch_store_row;

// A handle of a scan, which is read in batches of rows.
typedef uint64_t nuthatch_store_scan;

// Options of a writer. The usual options are all zero.
typedef struct {
    // Maximum number of batches in a transaction; 0: 4096.
    uint32_t group_batches;
    // Durability of commits: `NUTHATCH_STORE_SYNC`, `_GROUP` or `_NO_SYNC`.
    uint32_t durability;
    // Maximum number of bytes in a transaction; 0: 16 MiB. A longer batch has its own
    // transaction.
    uint64_t group_bytes;
    // Maximum number of bytes in the queue; 0: 64 MiB. While it is full, submitting waits.
    uint64_t queue_bytes;
    // How long a group waits for more batches, in milliseconds; 0: not at all.
    uint32_t linger_ms;
    // 1: if a batch of a group fails, all batches of the group fail. 0: the others are committed.
    uint32_t fail_together;
} nuthatch_store_writer_options;

// A handle of a batch writer: a queue of batches and the thread that commits them.
typedef uint64_t nuthatch_store_writer;

// One operation of a batch. Fields that the operation does not need are ignored.
typedef struct {
    // The table.
    nuthatch_store_table table;
    // The operation: `NUTHATCH_STORE_PUT`, `_DELETE`, `_DELETE_RANGE` or `_CHECK`.
    uint32_t operation;
    // The condition of a check: `NUTHATCH_STORE_ABSENT`, `_PRESENT`, `_EQUALS` or `_VERSION`.
    uint32_t condition;
    // The key.
    const uint8_t *key;
    // Length of the key in bytes.
    size_t key_len;
    // The value.
    const uint8_t *value;
    // Length of the value in bytes.
    size_t value_len;
    // Time of expiry of a put, or version of a check.
    uint64_t number;
    // The keys that are deleted by `NUTHATCH_STORE_DELETE_RANGE`.
    const nuthatch_store_range *range;
} nuthatch_store_write;

// The result of a committed batch.
typedef struct {
    // The number of the transaction that committed the batch.
    uint64_t transaction;
    // The number of the last change of the batch. A watch can continue after it.
    uint64_t sequence;
    // Number of keys that the batch deleted.
    uint64_t deleted;
} nuthatch_store_written;

// The acknowledgement of a batch.
typedef struct {
    // The `tag` with which the batch was submitted.
    uint64_t tag;
    // Where the batch was committed. Written only if `error.code` is 0.
    nuthatch_store_written written;
    // Why the batch was not committed. If it was committed, `code` is 0 and the other fields are
    // not written.
    nuthatch_error error;
} nuthatch_store_ack;

// A handle of a watch of changes.
typedef uint64_t nuthatch_store_watch;

// A committed change.
typedef struct {
    // The number of the change, greater than the numbers of all earlier changes.
    uint64_t sequence;
    // The number of the transaction that committed the change.
    uint64_t transaction;
    // Time of expiry of the value in milliseconds since 1970; 0: never.
    uint64_t expires_at_ms;
    // The name of the table in UTF-8, without a zero byte. Empty for the main table.
    const uint8_t *table;
    // The key.
    const uint8_t *key;
    // The new value. Empty unless the change is a put.
    const uint8_t *value;
    // Length of the table name in bytes.
    uint32_t table_len;
    // Length of the key in bytes.
    uint32_t key_len;
    // Length of the value in bytes.
    uint64_t value_len;
    // The kind of the change: `NUTHATCH_STORE_CHANGED_PUT`, `_DELETE` or `_EXPIRE`.
    uint32_t operation;
    // Always 0.
    uint32_t reserved;
} nuthatch_store_change;

// Statistics of a store.
typedef struct {
    // Length of a page in bytes.
    uint64_t page_bytes;
    // Address space of the memory map in bytes: the file can grow up to this without moving the
    // map.
    uint64_t map_bytes;
    // Bytes up to the last page in use, including free pages before it.
    uint64_t used_bytes;
    // Length of the file in bytes.
    uint64_t file_bytes;
    // Bytes of free pages, including those that become reusable when older readers end.
    uint64_t free_bytes;
    // The number of the last committed transaction.
    uint64_t transaction;
    // Number of open transactions in this process.
    uint64_t open_transactions;
    // The number of the last change.
    uint64_t sequence;
    // The number of the oldest kept change, if `keeps_changes` is 1.
    uint64_t oldest_change;
    // Number of reader slots that are in use or were used, in all processes.
    uint32_t readers;
    // Maximum number of reader slots.
    uint32_t max_readers;
    // 1 if the store keeps changes, otherwise 0.
    uint32_t keeps_changes;
    // Always 0.
    uint32_t reserved;
} nuthatch_store_stat;

// Statistics of a table.
typedef struct {
    // Number of rows, including expired rows that were not swept yet.
    uint64_t entries;
    // Number of branch pages.
    uint64_t branch_pages;
    // Number of leaf pages, which have the rows.
    uint64_t leaf_pages;
    // Number of pages with long values.
    uint64_t overflow_pages;
    // Number of levels of the tree.
    uint32_t depth;
    // Always 0.
    uint32_t reserved;
} nuthatch_store_table_stat;

// Progress callback: what was verified and all that is, in pages of a store or entries of a
// snapshot. `user` is the pointer that the caller passed.
typedef void (*nuthatch_progress)(void *user, uint64_t done, uint64_t all);

// The result of a successful verification.
typedef struct {
    // The number of the transaction whose state was verified.
    uint64_t transaction;
    // Number of pages.
    uint64_t pages;
    // Number of free pages.
    uint64_t free_pages;
    // Number of pages that are neither in use nor free. They waste space and are no damage, but
    // LMDB refuses to compact such a file.
    uint64_t lost_pages;
    // Number of tables, including the main table and system tables.
    uint64_t tables;
    // Number of rows of all tables, including system tables and expired rows.
    uint64_t entries;
} nuthatch_store_verified;

// Options for opening a snapshot. A null pointer, and a struct of zeros, are the default options.
typedef struct {
    // Where the bytes are kept: `NUTHATCH_SNAPSHOT_MAPPED`, `_POPULATED` or `_HUGE_PAGES`.
    uint32_t residency;
    // 1: lock the bytes in memory, so that the system never pages them out. Needs the privilege
    // `CAP_IPC_LOCK` or a sufficient limit `RLIMIT_MEMLOCK`.
    uint32_t lock;
    // 1: guard the map by a signal handler for SIGBUS, which is installed once in the process and
    // stays installed. If the file is truncated or its device fails, missing bytes then read as
    // zeros, errors about damage become `unreadable`, and `nuthatch_snapshot_check_readable`,
    // called after lookups, fails with that code. At most 4,096 files are guarded at once. 0: the
    // signal ends the process.
    uint32_t guard;
    // Must be 0.
    uint32_t reserved;
} nuthatch_snapshot_options;

// The data of a value.
typedef union {
    // Bytes, or a string in UTF-8, which no zero byte terminates.
    const uint8_t *bytes;
    // An integer; 0 or 1 for a boolean.
    int64_t i64;
    // A float.
    double f64;
    // The elements of a list of integers.
    const int64_t *i64_list;
    // The elements of a list of floats of 64 bits.
    const double *f64_list;
    // The elements of a list of floats of 32 bits.
    const float *f32_list;
    // The stored form of a list of strings, without alignment. `nuthatch_snapshot_string_at`
    // returns the strings.
    const uint8_t *string_list;
} nuthatch_snapshot_data;

// The value of a key. If `in_place` is 1, its pointers refer to the file, and are valid until the
// last reference to the snapshot is released. Otherwise the value was compressed, and its pointers
// refer to the scratch buffer of the call, or to the iterator, and are valid until the next call
// with that.
typedef struct {
    // The type: `NUTHATCH_SNAPSHOT_BYTES` to `_EMPTY_LIST`, or `NUTHATCH_SNAPSHOT_ABSENT` if the
    // key does not exist; then the other fields have no meaning.
    uint32_t type;
    // 1 if the value is in the file, 0 if it was decompressed.
    uint32_t in_place;
    // Length of bytes or of a string in bytes; number of elements of a list, 0 for an empty list;
    // otherwise 1.
    size_t len;
    // The value. The type determines the member. If `len` is 0, its pointer has no meaning.
    nuthatch_snapshot_data data;
} nuthatch_snapshot_value;

// Bytes or a string.
typedef struct {
    // The bytes. Ignored if `len` is 0.
    const uint8_t *data;
    // Length in bytes.
    size_t len;
} nuthatch_snapshot_bytes;

// An entry of a snapshot.
typedef struct {
    // The key. The pointer refers to the file.
    const uint8_t *key;
    // Length of the key in bytes.
    size_t key_len;
    // The value.
    nuthatch_snapshot_value value;
} nuthatch_snapshot_entry;

// Statistics of a snapshot, with the names of `nuthatch info --json`. For a set they are sums over
// the shards, without the manifest, unless stated otherwise.
typedef struct {
    // Length of the file in bytes.
    uint64_t file_bytes;
    // Number of entries.
    uint64_t entries;
    // Sum of the lengths of all keys in bytes.
    uint64_t key_bytes;
    // Sum of the lengths of all values in bytes, decompressed.
    uint64_t value_bytes;
    // Sum of the lengths of all stored values in bytes. A shared value counts once.
    uint64_t stored_value_bytes;
    // Number of entries that refer to a value that another entry stores.
    uint64_t shared_entries;
    // Number of entries whose value is compressed.
    uint64_t compressed_entries;
    // Length of the compression dictionary in bytes.
    uint64_t dictionary_bytes;
    // Length of the index in bytes.
    uint64_t index_bytes;
    // Length of the data in bytes.
    uint64_t data_bytes;
    // Length of the metadata in bytes, that of a manifest for a set.
    uint64_t metadata_bytes;
    // Number of partitions of the index.
    uint64_t partitions;
    // Number of lines of the index.
    uint64_t lines;
    // Seed of the key hash, the same in all shards.
    uint64_t seed;
    // Number of entries of each type: `entries_by_type[NUTHATCH_SNAPSHOT_STRING]` of strings.
    uint64_t entries_by_type[16];
    // Maximum number of index lines from the home line of a key to the line that holds it: 0 if
    // all keys are in their home lines. For a set, the maximum of all shards.
    uint32_t max_probe;
    // Number of shards; 0 for a file that was opened without a manifest.
    uint32_t shards;
    // Major version of the format.
    uint32_t version_major;
    // Minor version of the format; the highest of all shards.
    uint32_t version_minor;
} nuthatch_snapshot_stats;

// A name and a value of the metadata.
typedef struct {
    // The name, in UTF-8.
    nuthatch_snapshot_bytes name;
    // The value.
    nuthatch_snapshot_bytes value;
} nuthatch_snapshot_metadata_pair;

// Options of a watch. A null pointer, and a struct of zeros, are the default options.
typedef struct {
    // How files are opened.
    nuthatch_snapshot_options open;
    // Time between polls for a new file in milliseconds; 0: 250. `NUTHATCH_SNAPSHOT_NO_POLLING`:
    // no polls. If a system call fails for a new file, it is tried again after 1, 2, 4 and at most
    // 64 intervals. A damaged file is tried again only when the file at the path changes.
    uint32_t poll_interval_ms;
    // 1: every byte of a file is verified before readers switch to it. 0: a file is only opened,
    // which checks its header.
    uint32_t verify;
} nuthatch_snapshot_watch_options;

// A handle of a watch: it polls a path or a name for a new file, to which readers then switch.
typedef uint64_t nuthatch_snapshot_watch;

// The status of a watch.
typedef struct {
    // Number of switches to a new file.
    uint64_t switched;
    // Number of times that the newest file could not be opened or verified, or that there was no
    // file. The same error in successive polls counts once.
    uint64_t rejected;
    // 1 if an error prevents the switch to the newest file, otherwise 0.
    uint32_t has_error;
    // Always 0.
    uint32_t reserved;
    // The error in UTF-8, terminated by a zero byte; empty without one. A longer message is
    // truncated.
    uint8_t error[488];
    // The path of the file that readers read, terminated by a zero byte. A longer path is
    // truncated.
    uint8_t path[4096];
} nuthatch_snapshot_watch_status;

// Options of a writer. A null pointer, and a struct of zeros, are the default options.
typedef struct {
    // How rows with the same key are handled: `NUTHATCH_SNAPSHOT_DUPLICATE_ERROR`, `_FIRST` or
    // `_LAST`.
    uint32_t on_duplicate;
    // How values are compressed: `NUTHATCH_SNAPSHOT_COMPRESSION_NONE` or `_ZSTD`.
    uint32_t compression;
    // Level of zstd from 1 to 22; 0: 3. Without effect if `compression` is `_NONE`.
    uint32_t compression_level;
    // Maximum number of threads; 0: all cores. Each thread needs 4 MiB of the memory budget.
    uint32_t threads;
    // Memory budget in bytes; 0: 1 GiB. A budget below 16 MiB counts as 16 MiB. Rows beyond it are
    // written to temporary files in the folder of the snapshot.
    uint64_t memory_bytes;
    // Seed of the key hash.
    uint64_t seed;
    // Number of shards, at most 65,536: the snapshot is a manifest and that many files beside it.
    // Each shard needs 16 KiB of the memory budget. 0: the snapshot is one file.
    uint32_t shards;
    // Must be 0.
    uint32_t reserved;
} nuthatch_snapshot_writer_options;

// A handle of a snapshot writer.
typedef uint64_t nuthatch_snapshot_writer;

// The result of a build.
typedef struct {
    // Number of entries.
    uint64_t entries;
    // Number of rows that were added, duplicates included.
    uint64_t rows;
    // Length of the file in bytes; for a set, of all shards without the manifest.
    uint64_t file_bytes;
    // Sum of the lengths of all keys in bytes.
    uint64_t key_bytes;
    // Sum of the lengths of all values in bytes, uncompressed.
    uint64_t value_bytes;
    // Sum of the lengths of all stored values in bytes. A shared value counts once.
    uint64_t stored_value_bytes;
} nuthatch_snapshot_summary;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the name of an error code, such as `full`: a name in `testdata/store/errors.csv` or
// `testdata/errors.csv`, or `argument`, `handle`, `panic` or
// `compressed`. Returns `ok` for 0 and `unknown` for
// any other number. The string is static and terminated by a zero byte.
const char *nuthatch_code_name(int32_t code);

// Returns the version of this library, such as `0.1.0`. The string is static and terminated by a
// zero byte.
const char *nuthatch_version(void);

// Opens the store in a folder. `options` may be null; then the store is created if missing.
// Returns the handle in `store`. A process can open a folder only once, whatever path it uses.
int32_t nuthatch_store_open(const uint8_t *path,
                            size_t path_len,
                            const nuthatch_store_options *options,
                            nuthatch_store *store,
                            nuthatch_error *error);

// Closes a store and the handles of its tables. Scans, read transactions and watches of the store
// that are still open fail with `closed` from now on. Close them, too: the file stays open until
// the last of them is closed, and rows that they returned stay valid until then. Finish writers
// before this call; otherwise batches in their queues fail. If nothing else of the store is open,
// the store can be opened again when this call returns.
int32_t nuthatch_store_close(nuthatch_store store, nuthatch_error *error);

// Opens a table by its name, and creates it if it is missing. `kind` is `NUTHATCH_STORE_PLAIN`,
// `_STAMPED` or `_ANY_KIND`; a table of the other kind fails with `table`. An empty name is the
// main table. Returns the handle in `table`. Closing the store closes this handle.
int32_t nuthatch_store_open_table(nuthatch_store store,
                                  const uint8_t *name,
                                  size_t name_len,
                                  uint32_t kind,
                                  nuthatch_store_table *table,
                                  nuthatch_error *error);

// Closes the handle of a table. Scans of the table continue.
int32_t nuthatch_store_close_table(nuthatch_store_table table, nuthatch_error *error);

// Returns the kind of a table in `kind`: `NUTHATCH_STORE_PLAIN` or `_STAMPED`.
int32_t nuthatch_store_table_kind(nuthatch_store_table table,
                                  uint32_t *kind,
                                  nuthatch_error *error);

// Returns the names of all tables except the main table, in order, each followed by a zero byte.
// Returns the total number of bytes in `len`. Writes `names` only if `capacity` is at least `len`.
int32_t nuthatch_store_table_names(nuthatch_store store,
                                   uint8_t *names,
                                   size_t capacity,
                                   size_t *len,
                                   nuthatch_error *error);

// Looks up a key and returns the result in `entry`. A missing key is not an error. The value is
// copied to `value` if `capacity` bytes are enough. Otherwise `entry.value` is null, and
// `entry.value_len` is the required capacity.
int32_t nuthatch_store_get(nuthatch_store_table table,
                           const uint8_t *key,
                           size_t key_len,
                           uint8_t *value,
                           size_t capacity,
                           nuthatch_store_entry *entry,
                           nuthatch_error *error);

// Counts the keys of a range and returns the number in `count`. `range` may be null: all keys.
int32_t nuthatch_store_count(nuthatch_store_table table,
                             const nuthatch_store_range *range,
                             uint64_t *count,
                             nuthatch_error *error);

// Opens a read transaction, whose state of the store does not change. The file grows while others
// write, because pages of this state cannot be reused: close the read transaction soon. Several
// threads may use it at once. Returns the handle in `read_transaction`. `transaction` and
// `sequence` may be null; they return the numbers of the last transaction and of the last change
// in this state.
int32_t nuthatch_store_open_read_transaction(nuthatch_store store,
                                             nuthatch_store_read_transaction *read_transaction,
                                             uint64_t *transaction,
                                             uint64_t *sequence,
                                             nuthatch_error *error);

// Closes a read transaction. All pointers that it returned become invalid.
int32_t nuthatch_store_close_read_transaction(nuthatch_store_read_transaction read_transaction,
                                              nuthatch_error *error);

// Looks up several keys in a read transaction. `entries` has `count` elements and returns the
// results in the order of `keys`. Values are not copied: their pointers refer to the store, and
// are valid until the read transaction is closed.
int32_t nuthatch_store_read_transaction_get(nuthatch_store_read_transaction read_transaction,
                                            nuthatch_store_table table,
                                            const nuthatch_store_key *keys,
                                            nuthatch_store_entry *entries,
                                            size_t count,
                                            nuthatch_error *error);

// Returns the first rows of a scan in a read transaction, at most `capacity`, and their number in
// `count`. There are fewer than `capacity` only if the scan has no more rows, or if the limit or
// `batch_bytes` of the options is reached. To continue, call this again with the last key as an
// excluded bound. Rows are not copied: their pointers refer to the store, and are valid until the
// read transaction is closed.
int32_t nuthatch_store_read_transaction_rows(nuthatch_store_read_transaction read_transaction,
                                             nuthatch_store_table table,
                                             const nuthatch_store_scan_options *options,
                                             nuthatch_store_row *rows,
                                             size_t capacity,
                                             size_t *count,
                                             nuthatch_error *error);

// Opens a scan. Its read transaction begins with the first call of `nuthatch_store_scan_next`.
// `options` may be null: all rows. Returns the handle in `scan`.
int32_t nuthatch_store_open_scan(nuthatch_store_table table,
                                 const nuthatch_store_scan_options *options,
                                 nuthatch_store_scan *scan,
                                 nuthatch_error *error);

// Returns the next rows of a scan: a pointer to an array in `rows`, and its length in `count`,
// which is 0 after the last row. Rows are not copied: the pointers refer to the store, and are
// valid until the next call for this scan, or until the scan is closed. They stay valid if only
// the store is closed.
int32_t nuthatch_store_scan_next(nuthatch_store_scan scan,
                                 const nuthatch_store_row **rows,
                                 size_t *count,
                                 nuthatch_error *error);

// Closes a scan and ends its read transaction. All pointers that it returned become invalid.
int32_t nuthatch_store_close_scan(nuthatch_store_scan scan, nuthatch_error *error);

// Splits a scan into parts for `threads` threads, from 1 to 256. All parts see the same state of
// the store. If `range_count` is not 0, there is one part for each of `ranges`; otherwise the
// store chooses at most 16 parts for each thread. Each part is a scan: one thread at a time reads
// it, and the caller closes it. Returns the number of parts in `count`, and their handles in
// `scans`, in the order of the whole scan. If `capacity` is less than `count`, no part is opened.
// A limit in `options` is an error.
int32_t nuthatch_store_open_parts(nuthatch_store_table table,
                                  const nuthatch_store_scan_options *options,
                                  uint32_t threads,
                                  const nuthatch_store_range *ranges,
                                  size_t range_count,
                                  nuthatch_store_scan *scans,
                                  size_t capacity,
                                  size_t *count,
                                  nuthatch_error *error);

// Writes a value to a key, in its own transaction, which is committed when the call returns. Waits
// for the write lock.
int32_t nuthatch_store_put(nuthatch_store_table table,
                           const uint8_t *key,
                           size_t key_len,
                           const uint8_t *value,
                           size_t value_len,
                           nuthatch_error *error);

// Deletes a key, in its own transaction, which is committed when the call returns. Waits for the
// write lock. `found` may be null; it returns 1 if the key existed, otherwise 0.
int32_t nuthatch_store_delete(nuthatch_store_table table,
                              const uint8_t *key,
                              size_t key_len,
                              uint32_t *found,
                              nuthatch_error *error);

// Appends rows, in one transaction, which is committed when the call returns. The keys must be in
// ascending order and greater than all keys of the table; otherwise the call fails with
// `unordered` and writes nothing. Waits for the write lock. Appending is faster than single puts
// and fills pages completely.
int32_t nuthatch_store_append(nuthatch_store_table table,
                              const nuthatch_store_row *rows,
                              size_t count,
                              nuthatch_error *error);

// Starts a writer: a thread that commits the batches of many threads in groups. `options` may be
// null. Returns the handle in `writer`.
int32_t nuthatch_store_open_writer(nuthatch_store store,
                                   const nuthatch_store_writer_options *options,
                                   nuthatch_store_writer *writer,
                                   nuthatch_error *error);

// Submits a batch: writes that are executed in order and committed together or not at all. Copies
// them, and waits while the queue is full. If the call returns 0, an acknowledgement with `tag`
// follows.
int32_t nuthatch_store_submit(nuthatch_store_writer writer,
                              const nuthatch_store_write *batch,
                              size_t count,
                              uint64_t tag,
                              nuthatch_error *error);

// Waits up to `timeout_ms` for acknowledgements and returns those that have arrived, at most
// `capacity`, in `acks`, in the order of the commits. Returns their number in `count`, which is 0
// after a timeout. Fails with `closed` if the writer was finished and all acknowledgements were
// taken.
int32_t nuthatch_store_take_acks(nuthatch_store_writer writer,
                                 uint64_t timeout_ms,
                                 nuthatch_store_ack *acks,
                                 size_t capacity,
                                 size_t *count,
                                 nuthatch_error *error);

// Finishes a writer: it accepts no more batches. Returns when all submitted batches are
// acknowledged. The acknowledgements can still be taken.
int32_t nuthatch_store_finish_writer(nuthatch_store_writer writer, nuthatch_error *error);

// Closes a writer without waiting. Submitted batches are written, and their acknowledgements are
// discarded.
int32_t nuthatch_store_close_writer(nuthatch_store_writer writer, nuthatch_error *error);

// Opens a watch of changes to the keys of a range, in one table, or in all tables if `table` is 0.
// `range` may be null: all keys. `start` is `NUTHATCH_STORE_FROM_NOW`, `_AFTER` or `_FROM_OLDEST`;
// `sequence` is used with `_AFTER` only. The store must keep changes
// (`nuthatch_store_keep_changes`). Returns the handle in `watch`.
int32_t nuthatch_store_open_watch(nuthatch_store store,
                                  nuthatch_store_table table,
                                  const nuthatch_store_range *range,
                                  uint32_t start,
                                  uint64_t sequence,
                                  nuthatch_store_watch *watch,
                                  nuthatch_error *error);

// Waits up to `timeout_ms` for changes. Returns a pointer to an array in `changes`, and its length
// in `count`, which is 0 after a timeout. The pointers are valid until the next call for this
// watch, or until the watch is closed. Fails with `closed` if the watch was stopped or its store
// was closed.
int32_t nuthatch_store_watch_next(nuthatch_store_watch watch,
                                  uint64_t timeout_ms,
                                  const nuthatch_store_change **changes,
                                  size_t *count,
                                  nuthatch_error *error);

// Stops a watch: a thread that waits for changes returns with `closed`. Any thread may call this;
// the thread that reads the changes then closes the watch.
int32_t nuthatch_store_stop_watch(nuthatch_store_watch watch, nuthatch_error *error);

// Closes a watch. All pointers that it returned become invalid.
int32_t nuthatch_store_close_watch(nuthatch_store_watch watch, nuthatch_error *error);

// Returns statistics of a store in `stat`.
int32_t nuthatch_store_stat_of(nuthatch_store store,
                               nuthatch_store_stat *stat,
                               nuthatch_error *error);

// Returns statistics of a table in `stat`.
int32_t nuthatch_store_table_stat_of(nuthatch_store_table table,
                                     nuthatch_store_table_stat *stat,
                                     nuthatch_error *error);

// Keeps the newest changes of all tables for watches: at most `max_changes` changes with at most
// `max_bytes` bytes in total. The newest change is kept even if it is longer. The limits apply to
// all processes until they are changed. If `max_changes` is 0, no changes are kept, and kept
// changes are removed.
int32_t nuthatch_store_keep_changes(nuthatch_store store,
                                    uint64_t max_changes,
                                    uint64_t max_bytes,
                                    nuthatch_error *error);

// Syncs the file: all committed writes survive a crash, whatever their durability was.
int32_t nuthatch_store_sync(nuthatch_store store, nuthatch_error *error);

// Removes expired rows. `count` may be null; it returns the number of processed entries of the
// expiry table, including those that earlier builds left for rows which no longer exist.
int32_t nuthatch_store_sweep(nuthatch_store store, uint64_t *count, nuthatch_error *error);

// Copies one state of a store to a folder without a store. The folder is created if missing; its
// parent must exist. Others may write meanwhile. The file of the copy gets its name when it is
// complete. If `compact` is not 0, free pages are omitted, which takes longer.
int32_t nuthatch_store_backup(nuthatch_store store,
                              const uint8_t *folder,
                              size_t folder_len,
                              uint32_t compact,
                              nuthatch_error *error);

// Compacts the store in a folder: replaces its file by a copy without free pages. No process may
// have the store open. `before` and `after` may be null; they return the length of the file in
// bytes before and after.
int32_t nuthatch_store_compact(const uint8_t *folder,
                               size_t folder_len,
                               uint64_t *before,
                               uint64_t *after,
                               nuthatch_error *error);

// Verifies all pages of one state of a store. `progress` may be null; it is called on this thread
// with `user`, the number of verified pages and the number of all pages. `verified` may be null;
// it returns the result. Damage is the error `corrupt`.
int32_t nuthatch_store_verify(nuthatch_store store,
                              nuthatch_progress progress,
                              void *user,
                              nuthatch_store_verified *verified,
                              nuthatch_error *error);

// Opens a snapshot: a file, or a set of shards by the path of its manifest. `options` may be null.
// Returns the snapshot in `snapshot`, with one reference. Reads headers, dictionaries and the
// manifest only, unless `residency` or `lock` requires all bytes.
int32_t nuthatch_snapshot_open(const uint8_t *path,
                               size_t path_len,
                               const nuthatch_snapshot_options *options,
                               const nuthatch_snapshot **snapshot,
                               nuthatch_error *error);

// Opens a snapshot from the bytes of one file, such as a file that is part of the program. Copies
// the bytes. Returns the snapshot in `snapshot`, with one reference. The bytes of a manifest are
// the error `unsupported`.
int32_t nuthatch_snapshot_open_bytes(const uint8_t *bytes,
                                     size_t bytes_len,
                                     const nuthatch_snapshot **snapshot,
                                     nuthatch_error *error);

// Adds a reference to a snapshot, for another thread or another owner. One call of
// `nuthatch_snapshot_close` releases it.
int32_t nuthatch_snapshot_retain(const nuthatch_snapshot *snapshot, nuthatch_error *error);

// Stops a snapshot: later calls that read it, or an iterator of it, fail with `closed` in all
// threads. A call that is running in another thread may still succeed. Releases nothing: pointers
// to keys and values stay valid, and each reference must still be released.
int32_t nuthatch_snapshot_stop(const nuthatch_snapshot *snapshot, nuthatch_error *error);

// Releases a reference to a snapshot. With the last reference, the file is unmapped, and all
// pointers to its keys and values become invalid.
int32_t nuthatch_snapshot_close(const nuthatch_snapshot *snapshot, nuthatch_error *error);

// Returns the string at an index below `value.len` of a list of strings in `string`. A function of
// this library must have written `value`. The string is valid as long as the value. An index that
// is too large, and a value of another type, are the error `argument`.
int32_t nuthatch_snapshot_string_at(const nuthatch_snapshot_value *value,
                                    size_t index,
                                    nuthatch_snapshot_bytes *string,
                                    nuthatch_error *error);

// Creates a buffer for decompressed values. Returns it in `scratch`. The caller frees it.
int32_t nuthatch_snapshot_scratch_create(nuthatch_snapshot_scratch **scratch,
                                         nuthatch_error *error);

// Frees a buffer. Pointers to values in it become invalid.
int32_t nuthatch_snapshot_scratch_free(nuthatch_snapshot_scratch *scratch, nuthatch_error *error);

// Looks up a key. Returns the value in `value`. A missing key is not an error: the type of the
// value is then `NUTHATCH_SNAPSHOT_ABSENT`. A compressed value is decompressed into `scratch`, and
// is valid until the next call with the same buffer. If `scratch` is null, a compressed value is
// the error `compressed`. Takes no lock, and allocates memory only to decompress a value.
int32_t nuthatch_snapshot_get(const nuthatch_snapshot *snapshot,
                              const uint8_t *key,
                              size_t key_len,
                              nuthatch_snapshot_scratch *scratch,
                              nuthatch_snapshot_value *value,
                              nuthatch_error *error);

// Looks up bytes, as `nuthatch_snapshot_get`. A value of another type is the error `wrong-type`.
int32_t nuthatch_snapshot_get_bytes(const nuthatch_snapshot *snapshot,
                                    const uint8_t *key,
                                    size_t key_len,
                                    nuthatch_snapshot_scratch *scratch,
                                    nuthatch_snapshot_value *value,
                                    nuthatch_error *error);

// Looks up a string, as `nuthatch_snapshot_get_bytes`.
int32_t nuthatch_snapshot_get_string(const nuthatch_snapshot *snapshot,
                                     const uint8_t *key,
                                     size_t key_len,
                                     nuthatch_snapshot_scratch *scratch,
                                     nuthatch_snapshot_value *value,
                                     nuthatch_error *error);

// Looks up a boolean, as `nuthatch_snapshot_get_bytes`: 0 or 1 in `value.data.i64`.
int32_t nuthatch_snapshot_get_bool(const nuthatch_snapshot *snapshot,
                                   const uint8_t *key,
                                   size_t key_len,
                                   nuthatch_snapshot_scratch *scratch,
                                   nuthatch_snapshot_value *value,
                                   nuthatch_error *error);

// Looks up an integer, as `nuthatch_snapshot_get_bytes`.
int32_t nuthatch_snapshot_get_i64(const nuthatch_snapshot *snapshot,
                                  const uint8_t *key,
                                  size_t key_len,
                                  nuthatch_snapshot_scratch *scratch,
                                  nuthatch_snapshot_value *value,
                                  nuthatch_error *error);

// Looks up a float, as `nuthatch_snapshot_get_bytes`.
int32_t nuthatch_snapshot_get_f64(const nuthatch_snapshot *snapshot,
                                  const uint8_t *key,
                                  size_t key_len,
                                  nuthatch_snapshot_scratch *scratch,
                                  nuthatch_snapshot_value *value,
                                  nuthatch_error *error);

// Looks up a list of integers, as `nuthatch_snapshot_get_bytes`. An empty list can be read as a
// list of any type: its length is 0.
int32_t nuthatch_snapshot_get_i64_list(const nuthatch_snapshot *snapshot,
                                       const uint8_t *key,
                                       size_t key_len,
                                       nuthatch_snapshot_scratch *scratch,
                                       nuthatch_snapshot_value *value,
                                       nuthatch_error *error);

// Looks up a list of floats of 64 bits, as `nuthatch_snapshot_get_i64_list`.
int32_t nuthatch_snapshot_get_f64_list(const nuthatch_snapshot *snapshot,
                                       const uint8_t *key,
                                       size_t key_len,
                                       nuthatch_snapshot_scratch *scratch,
                                       nuthatch_snapshot_value *value,
                                       nuthatch_error *error);

// Looks up a list of floats of 32 bits, as `nuthatch_snapshot_get_i64_list`.
int32_t nuthatch_snapshot_get_f32_list(const nuthatch_snapshot *snapshot,
                                       const uint8_t *key,
                                       size_t key_len,
                                       nuthatch_snapshot_scratch *scratch,
                                       nuthatch_snapshot_value *value,
                                       nuthatch_error *error);

// Looks up a list of strings, as `nuthatch_snapshot_get_i64_list`.
int32_t nuthatch_snapshot_get_string_list(const nuthatch_snapshot *snapshot,
                                          const uint8_t *key,
                                          size_t key_len,
                                          nuthatch_snapshot_scratch *scratch,
                                          nuthatch_snapshot_value *value,
                                          nuthatch_error *error);

// Looks up whether a key exists, and returns 1 or 0 in `found`. Does not decode the value.
int32_t nuthatch_snapshot_contains(const nuthatch_snapshot *snapshot,
                                   const uint8_t *key,
                                   size_t key_len,
                                   uint32_t *found,
                                   nuthatch_error *error);

// Looks up the type of a key, and returns it in `type`: `NUTHATCH_SNAPSHOT_ABSENT` for a missing
// key, otherwise `NUTHATCH_SNAPSHOT_BYTES` to `_EMPTY_LIST`. Does not decode the value.
int32_t nuthatch_snapshot_type_of(const nuthatch_snapshot *snapshot,
                                  const uint8_t *key,
                                  size_t key_len,
                                  uint32_t *type,
                                  nuthatch_error *error);

// Looks up `count` keys. Writes the value of `keys[i]` to `values[i]`, as `nuthatch_snapshot_get`.
// Faster than single lookups in large files, because the memory accesses of several keys overlap.
// `scratch` keeps all values that were compressed until the next call with it. `values` need not
// be initialized. Fails with the error of the first key for which a lookup fails.
int32_t nuthatch_snapshot_get_many(const nuthatch_snapshot *snapshot,
                                   const nuthatch_snapshot_bytes *keys,
                                   size_t count,
                                   nuthatch_snapshot_scratch *scratch,
                                   nuthatch_snapshot_value *values,
                                   nuthatch_error *error);

// Opens an iterator over all entries, in the order of the file, which is unrelated to the order of
// the keys and the same each time. Returns it in `iterator`. The caller closes it; until then, it
// has a reference to the snapshot. If `verified` is 1, the checksums of each partition of the file
// are checked before its first entry is returned: damage is then an error, not a wrong entry, and
// the iteration ends after its first error. If `verified` is 0, the next call after an error
// continues with the next entry.
int32_t nuthatch_snapshot_iterator_open(const nuthatch_snapshot *snapshot,
                                        uint32_t verified,
                                        nuthatch_snapshot_iterator **iterator,
                                        nuthatch_error *error);

// Returns the next entries: a pointer to an array in `entries`, and its length in `count`, at most
// 1,024, and 0 after the last entry. Keys, and values with `in_place` 1, are valid until the last
// reference to the snapshot is released. The array and all other values are valid until the next
// call for this iterator, or until it is closed. A call that fails returns no entries.
int32_t nuthatch_snapshot_iterator_next(nuthatch_snapshot_iterator *iterator,
                                        const nuthatch_snapshot_entry **entries,
                                        size_t *count,
                                        nuthatch_error *error);

// Closes an iterator, and releases its reference to the snapshot.
int32_t nuthatch_snapshot_iterator_close(nuthatch_snapshot_iterator *iterator,
                                         nuthatch_error *error);

// Returns the number of entries in `len`.
int32_t nuthatch_snapshot_len(const nuthatch_snapshot *snapshot,
                              uint64_t *len,
                              nuthatch_error *error);

// Returns statistics of a snapshot in `stats`. Reads headers only.
int32_t nuthatch_snapshot_stats_of(const nuthatch_snapshot *snapshot,
                                   nuthatch_snapshot_stats *stats,
                                   nuthatch_error *error);

// Returns the metadata that the writer was given, in ascending order of the names: the first
// `capacity` pairs in `pairs`, and the number of all pairs in `count`. Names and values are valid
// until the last reference to the snapshot is released. Checks the checksum of the metadata, and
// fails with `corrupt` if it is wrong.
int32_t nuthatch_snapshot_metadata(const nuthatch_snapshot *snapshot,
                                   nuthatch_snapshot_metadata_pair *pairs,
                                   size_t capacity,
                                   size_t *count,
                                   nuthatch_error *error);

// Verifies every byte of a snapshot on `threads` threads; 0: one for each core. Returns when all
// bytes are verified, or at the first damage, with `corrupt`. `progress` may be null. Several
// threads call it at once, with `user`, the number of verified entries and that of all entries. It
// must not throw an exception of C++.
int32_t nuthatch_snapshot_verify(const nuthatch_snapshot *snapshot,
                                 uint32_t threads,
                                 nuthatch_progress progress,
                                 void *user,
                                 nuthatch_error *error);

// Checks that every page read so far was readable: if this succeeds, everything that was read
// before the call came from the file. Fails with `unreadable` if the file was truncated or its
// device failed. Detects that only if the snapshot was opened with the option `guard`; without it,
// the call always succeeds.
int32_t nuthatch_snapshot_check_readable(const nuthatch_snapshot *snapshot, nuthatch_error *error);

// Opens the snapshot at a path, and watches the path for files that are renamed over it. `options`
// may be null. Returns the handle in `watch`. Fails if the first file cannot be opened or
// verified.
int32_t nuthatch_snapshot_watch_open(const uint8_t *path,
                                     size_t path_len,
                                     const nuthatch_snapshot_watch_options *options,
                                     nuthatch_snapshot_watch *watch,
                                     nuthatch_error *error);

// Opens the latest of several generations, and watches for later ones. Generation 42 of the name
// `dir/users` is the file `dir/users.42.nut`; the file `dir/users.latest` has the number of the
// latest generation in decimal digits. `options` may be null. Returns the handle in `watch`.
int32_t nuthatch_snapshot_watch_open_generations(const uint8_t *name,
                                                 size_t name_len,
                                                 const nuthatch_snapshot_watch_options *options,
                                                 nuthatch_snapshot_watch *watch,
                                                 nuthatch_error *error);

// Publishes a generation: replaces the file `NAME.latest`, so that watches switch their readers to
// the file `NAME.GENERATION.nut`. Fails with `io` if that file does not exist. Waits for the disk.
int32_t nuthatch_snapshot_publish_generation(const uint8_t *name,
                                             size_t name_len,
                                             uint64_t generation,
                                             nuthatch_error *error);

// Polls for a new file now, and tries a file again that was rejected before. Returns in
// `switched`, which may be null, 1 if readers switch to a new file, otherwise 0. If the file is
// rejected, the call succeeds, and the status has the error. Waits while another thread opens or
// verifies a file.
int32_t nuthatch_snapshot_watch_refresh(nuthatch_snapshot_watch watch,
                                        uint32_t *switched,
                                        nuthatch_error *error);

// Returns the status of a watch in `status`. Does not wait while a file is opened or verified.
int32_t nuthatch_snapshot_watch_status_of(nuthatch_snapshot_watch watch,
                                          nuthatch_snapshot_watch_status *status,
                                          nuthatch_error *error);

// Closes a watch: polling stops. Its readers keep the files that they have. Waits while the watch
// opens or verifies a file.
int32_t nuthatch_snapshot_watch_close(nuthatch_snapshot_watch watch, nuthatch_error *error);

// Opens a reader of a watch for one thread. Returns it in `reader`. The caller closes it. A reader
// stays usable after the watch is closed, and then always returns the same snapshot.
int32_t nuthatch_snapshot_reader_open(nuthatch_snapshot_watch watch,
                                      nuthatch_snapshot_reader **reader,
                                      nuthatch_error *error);

// Returns the newest snapshot in `snapshot`. The pointer, and its keys and values, are valid until
// the next call for this reader. The reader owns the reference: the caller does not close the
// snapshot, or first adds a reference of its own by `nuthatch_snapshot_retain`, to keep it for
// longer. Takes no lock, unless there is a new file.
int32_t nuthatch_snapshot_reader_current(nuthatch_snapshot_reader *reader,
                                         const nuthatch_snapshot **snapshot,
                                         nuthatch_error *error);

// Closes a reader, and releases its reference to the snapshot.
int32_t nuthatch_snapshot_reader_close(nuthatch_snapshot_reader *reader, nuthatch_error *error);

// Starts a snapshot that `nuthatch_snapshot_writer_finish` publishes at this path. `options` may
// be null. Returns the handle in `writer`. A file at the path is replaced when the snapshot is
// complete. Until then, the bytes are in a temporary file in the same folder.
//
// Rows can be added in any order and by several threads; a call waits while another thread adds
// rows to the same writer. The bytes of the file depend on the rows and on `on_duplicate`,
// `compression`, `compression_level`, `seed` and `shards` only; the order of rows matters only
// among those with the same key.
int32_t nuthatch_snapshot_writer_create(const uint8_t *path,
                                        size_t path_len,
                                        const nuthatch_snapshot_writer_options *options,
                                        nuthatch_snapshot_writer *writer,
                                        nuthatch_error *error);

// Adds a row with bytes. A key has at most 65,535 bytes, a value at most 4 GiB: beyond that, all
// functions that add rows fail with `limit`, and the writer stays usable.
int32_t nuthatch_snapshot_writer_insert_bytes(nuthatch_snapshot_writer writer,
                                              const uint8_t *key,
                                              size_t key_len,
                                              const uint8_t *value,
                                              size_t value_len,
                                              nuthatch_error *error);

// Adds a row with a string in UTF-8.
int32_t nuthatch_snapshot_writer_insert_string(nuthatch_snapshot_writer writer,
                                               const uint8_t *key,
                                               size_t key_len,
                                               const uint8_t *value,
                                               size_t value_len,
                                               nuthatch_error *error);

// Adds a row with a boolean: false if `value` is 0, otherwise true.
int32_t nuthatch_snapshot_writer_insert_bool(nuthatch_snapshot_writer writer,
                                             const uint8_t *key,
                                             size_t key_len,
                                             uint32_t value,
                                             nuthatch_error *error);

// Adds a row with an integer.
int32_t nuthatch_snapshot_writer_insert_i64(nuthatch_snapshot_writer writer,
                                            const uint8_t *key,
                                            size_t key_len,
                                            int64_t value,
                                            nuthatch_error *error);

// Adds a row with a float. A NaN keeps its bits.
int32_t nuthatch_snapshot_writer_insert_f64(nuthatch_snapshot_writer writer,
                                            const uint8_t *key,
                                            size_t key_len,
                                            double value,
                                            nuthatch_error *error);

// Adds a row with a list of `count` integers. A list without elements is stored as an empty list.
int32_t nuthatch_snapshot_writer_insert_i64_list(nuthatch_snapshot_writer writer,
                                                 const uint8_t *key,
                                                 size_t key_len,
                                                 const int64_t *value,
                                                 size_t count,
                                                 nuthatch_error *error);

// Adds a row with a list of `count` floats of 64 bits. A list without elements is stored as an
// empty list.
int32_t nuthatch_snapshot_writer_insert_f64_list(nuthatch_snapshot_writer writer,
                                                 const uint8_t *key,
                                                 size_t key_len,
                                                 const double *value,
                                                 size_t count,
                                                 nuthatch_error *error);

// Adds a row with a list of `count` floats of 32 bits. A list without elements is stored as an
// empty list.
int32_t nuthatch_snapshot_writer_insert_f32_list(nuthatch_snapshot_writer writer,
                                                 const uint8_t *key,
                                                 size_t key_len,
                                                 const float *value,
                                                 size_t count,
                                                 nuthatch_error *error);

// Adds a row with a list of `count` strings, each in UTF-8. A list without elements is stored as
// an empty list.
int32_t nuthatch_snapshot_writer_insert_string_list(nuthatch_snapshot_writer writer,
                                                    const uint8_t *key,
                                                    size_t key_len,
                                                    const nuthatch_snapshot_bytes *value,
                                                    size_t count,
                                                    nuthatch_error *error);

// Adds a row with a value in its stored form, as docs/formats/snapshot.md describes it: numbers
// are little-endian; a list has its elements, without a count; a list of strings has a count of 32
// bits, for each string the offset of its end in the text as 32 bits, and the text. `type` is
// `NUTHATCH_SNAPSHOT_BYTES` to `_EMPTY_LIST`. The value needs no alignment. A list type without
// bytes is stored as an empty list.
int32_t nuthatch_snapshot_writer_insert(nuthatch_snapshot_writer writer,
                                        const uint8_t *key,
                                        size_t key_len,
                                        uint32_t type,
                                        const uint8_t *value,
                                        size_t value_len,
                                        nuthatch_error *error);

// Adds rows that are packed in one array, for languages in which calls of C are expensive. Each
// row is a type as 32 bits, the length of the key as 32 bits, the length of the value as 64 bits,
// all little-endian, then the key, then the value as in `nuthatch_snapshot_writer_insert`. There
// is no padding. If a row fails, the rows before it were added, and `error.position` is its index.
int32_t nuthatch_snapshot_writer_insert_rows(nuthatch_snapshot_writer writer,
                                             const uint8_t *rows,
                                             size_t rows_len,
                                             nuthatch_error *error);

// Sets a value of the metadata: any bytes, under a name in UTF-8 of 1 to 255 bytes. Replaces an
// earlier value of that name. Fails with `limit` for another length of the name, and if all
// metadata would take more than 1 MiB.
int32_t nuthatch_snapshot_writer_set_metadata(nuthatch_snapshot_writer writer,
                                              const uint8_t *name,
                                              size_t name_len,
                                              const uint8_t *value,
                                              size_t value_len,
                                              nuthatch_error *error);

// Writes the file, syncs it, publishes it at its path, and closes the handle. Waits for the disk.
// `summary` may be null. If this fails, the handle is closed, too, and the path is unchanged, with
// one exception: after `not-durable` the new file is published, but a power failure may restore
// the old one.
int32_t nuthatch_snapshot_writer_finish(nuthatch_snapshot_writer writer,
                                        nuthatch_snapshot_summary *summary,
                                        nuthatch_error *error);

// Abandons a snapshot: removes its temporary files and closes the handle. The path is unchanged.
int32_t nuthatch_snapshot_writer_abandon(nuthatch_snapshot_writer writer, nuthatch_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUTHATCH_H */
