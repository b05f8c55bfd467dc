"""Types of keyword arguments that several calls share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import ReadableBuffer

__all__ = [
    "Bounds",
    "ChunksOptions",
    "Condition",
    "ConnectOptions",
    "OpenOptions",
    "ParallelScanOptions",
    "ScanOptions",
    "SnapshotOptions",
    "SnapshotWatchOptions",
    "SnapshotWriterOptions",
    "WriterOptions",
]


class OpenOptions(TypedDict, total=False):
    """Settings of a store in this process."""

    create: bool
    """Whether to create a store if none exists; ``True`` by default."""
    read_only: bool
    """Whether the store is opened for reading only, so that writes fail; ``False`` by default."""
    durability: Literal["sync", "group", "none"]
    """What a commit waits for, unless a transaction has its own setting. It determines what a crash
    of the machine can lose: ``sync``, the default, nothing; ``group`` the last commit; ``none`` any
    number of the last commits, and possibly the store."""
    reserve: int
    """Initial address space of the memory map in bytes; 1 TiB by default. It uses no memory and no
    disk space."""
    limit: int
    """Maximum size of the file in bytes; no limit by default. Writes beyond it raise
    ``FullError``."""
    growth_patience: float
    """Maximum time in seconds that a write which needs a larger map waits for open transactions to
    end; 5 by default."""
    tables: int
    """Maximum number of open tables; 256 by default."""
    readers: int
    """Maximum number of open read transactions in all processes; 1022 by default. The value of the
    first process that opens the store applies."""
    threads: int
    """Maximum number of threads that read for asynchronous scans; by default one per core, from 2
    to 16."""
    allow_network_filesystem: bool
    """Whether to open a store on a network filesystem, which is refused by default. Machines do not
    share the memory maps of a store, so only processes of one machine may use it."""


class SnapshotOptions(TypedDict, total=False):
    """Settings of an open snapshot."""

    residency: Literal["mapped", "populated", "huge-pages"]
    """Where the bytes are kept: ``mapped``, the default, reads pages on demand from the page cache,
    which all processes share; ``populated`` reads all of them when the file is opened;
    ``huge-pages`` copies the file into memory of this process when it is opened, for the fastest
    lookups in large files."""
    lock: bool
    """Whether the bytes are locked in memory; ``False`` by default. Needs ``CAP_IPC_LOCK`` or a
    sufficient limit ``RLIMIT_MEMLOCK``."""


class SnapshotWatchOptions(SnapshotOptions, total=False):
    """Settings of a watch of a snapshot."""

    interval: float
    """Seconds between polls for another file; 0.25 by default. With 0, only ``refresh`` polls.
    After the code ``io`` or ``unreadable``, a file is tried again after 1, 2, 4 and so on up to 64
    intervals; after another error, such as for a damaged file, when the file at the path changes.
    """
    verify: bool
    """Whether ``Snapshot.verify`` must succeed before the watch switches to a file; ``False`` by
    default. It reads the whole file."""


class SnapshotWriterOptions(TypedDict, total=False):
    """Settings of a new snapshot. They are those of ``nuthatch build``."""

    on_duplicate: Literal["error", "first", "last"]
    """What happens if a key has several rows: ``error``, the default, or the row that is kept."""
    compress: Literal["zstd"] | None
    """Compresses each value by itself; ``None`` by default. A lookup then decompresses the value,
    instead of reading it in place. A value that would shrink by less than an eighth, or has more
    than 16 MiB, is not compressed."""
    level: int
    """Compression level, from 1 to 22; 3 by default."""
    memory: int
    """Memory budget of the build in bytes; 1 GiB by default; less than 16 MiB counts as 16 MiB.
    Rows beyond it are written to temporary files in the folder of the output."""
    threads: int
    """Maximum number of threads; all cores by default."""
    seed: int
    """Seed of the key hash; 0 by default."""
    shards: int
    """Number of shards of a set, up to 65,536; 0, the default, for one file."""
    metadata: Mapping[str, str | bytes]
    """Names with values to store in the file, such as where the data comes from. Names have 1 to
    255 bytes in UTF-8; names and values together take at most 1 MiB."""


class ConnectOptions(TypedDict, total=False):
    """Settings of the connection to a store behind a server."""

    token: str
    """Token that is sent with each call."""
    ca: str | os.PathLike[str]
    """Path of a PEM file with the CA certificates to trust for ``grpcs://``; by default those of
    the system."""
    cert: str | os.PathLike[str]
    """Path of the client certificate in PEM."""
    key: str | os.PathLike[str]
    """Path of the private key of the client certificate in PEM."""
    server_name: str
    """Name that the server's certificate must have; by default the host of the address."""
    insecure: bool
    """Whether the token may be sent to other machines without TLS; ``False`` by default."""
    connect_timeout: float
    """Maximum time of ``connect``, including retries, and of each later attempt to reconnect, in
    seconds; 10 by default."""
    timeout: float
    """Maximum time of a call with one response, including retries, in seconds; 30 by default. It
    also limits the wait for the beginning of a stream, and for the next response of a transaction.
    """
    retries: int
    """Maximum number of retries of a read, or of a write that was not sent; 3 by default. With 0,
    watches and writers do not reconnect either."""
    reconnect: float
    """Maximum time that a watch or a writer tries to reconnect after a lost connection, in seconds;
    30 by default."""
    message_bytes: int
    """Maximum length of a response in bytes; 64 MiB by default."""


class Bounds(TypedDict, total=False):
    """A range of keys; without bounds, all keys. ``prefix`` can be combined with the others."""

    from_: ReadableBuffer | None
    """Lower bound, included."""
    after: ReadableBuffer | None
    """Lower bound, excluded."""
    to: ReadableBuffer | None
    """Upper bound, included."""
    before: ReadableBuffer | None
    """Upper bound, excluded."""
    prefix: ReadableBuffer | None
    """Prefix of all keys in the range."""


class ParallelScanOptions(Bounds, total=False):
    """Range, order and batches of a scan by several threads."""

    reverse: bool
    """Whether to scan in descending key order; ``False`` by default."""
    keys_only: bool
    """Whether to omit values, which are empty then; ``False`` by default."""
    batch_rows: int | None
    """Maximum number of rows of a batch, for a store in this process; 4096 by default."""
    batch_bytes: int | None
    """Number of bytes of keys and values at which a batch ends; 4 MiB by default, 256 KiB for a
    server."""


class ScanOptions(ParallelScanOptions, total=False):
    """Range, order, batches and limit of a scan."""

    limit: int | None
    """Maximum number of rows; by default unlimited."""


class Condition(TypedDict, total=False):
    """A condition on a key: exactly one of these."""

    absent: bool
    """The key does not exist."""
    present: bool
    """The key exists."""
    equals: ReadableBuffer | None
    """The key exists with this value."""
    version: int | None
    """The key exists with this version, in a stamped table."""


class WriterOptions(TypedDict, total=False):
    """Queue and groups of a writer. Only ``queue_bytes`` applies to a store behind a server."""

    queue_bytes: int | None
    """Maximum size of the queue in bytes, above which writes wait; 64 MiB by default, 16 MiB for a
    server."""
    durability: Literal["sync", "group", "none"] | None
    """What commits wait for before a batch is acknowledged; by default as the store does."""
    failure: Literal["alone", "group"] | None
    """What happens to a group in which one batch fails: with ``alone``, the other batches are
    committed; with ``group``, they fail, too."""
    linger: float | None
    """Time that a group waits for more batches, in seconds; 0 by default."""


class ChunksOptions(TypedDict, total=False):
    """Settings of the folder of a chunk cache."""

    limit: int | None
    """Maximum size of all files together in bytes, at least 4 MiB; 10 GiB for a new folder. Applies
    to all processes from then on. If the folder is larger, opening it evicts the least used chunks
    at once, without confirmation; pinned objects stay."""
    min_free: int | None
    """Bytes of the filesystem that stay free; 0 for a new folder. Applies to all processes from
    then on."""
    check: Literal["never", "once", "always"] | None
    """When bytes are compared with their checksum: ``never``, ``always``, or, by default, ``once``:
    when this process first reads them."""
    patience: float | None
    """Maximum time that a put waits while other threads or processes change the folder, in seconds;
    2 by default. After that its bytes are not kept."""
    segment_len: int | None
    """Length of a segment in bytes, the unit of reservation and eviction: 64 KiB to 4 GiB. By
    default the limit divided by 128, but at least 4 MiB and at most 512 MiB; for limits below 64
    MiB, a sixteenth of the limit. It is never more than an eighth of the limit."""
    parts: int | None
    """Minimum number of chunks that the index has room for; by default one per 16 KiB of the limit.
    The index grows if there are more. Applies to all processes from then on."""
    share_with_group: bool | None
    """Whether the group of the folder has access: modes 2770 and 0660 instead of 0700 and 0600.
    Applies to all processes from then on."""
    open_files: int | None
    """Maximum number of files that are kept open for reading; 256 by default."""
    guard: bool | None
    """Whether a handler for ``SIGBUS`` protects the process if another program truncates a mapped
    file; ``True`` by default."""
