"""Nuthatch: snapshots, an ordered key-value store, and a chunk cache.

``open_snapshot`` maps an immutable file of typed values; ``build_snapshot`` and ``write_snapshot``
write one, and ``nuthatch.delivery`` brings it to other machines.
``open`` and ``connect`` return a :class:`Store` with blocking calls. ``nuthatch.aio`` has the same
for asyncio. ``nuthatch.chunks`` caches ranges of remote objects on the local disk. ``nuthatch.fs``
is a filesystem for fsspec that reads through this cache, and ``open_url`` opens a single file. On
other systems than Linux, the package has snapshots only.
"""

from __future__ import annotations

import os
import sys
from typing import Unpack

from nuthatch import errors
from nuthatch._native import (
    ArrowColumn,
    Snapshot,
    SnapshotStats,
    SnapshotSummary,
    SnapshotWatch,
    SnapshotWatchStatus,
    SnapshotWriter,
    __version__,
)
from nuthatch.errors import (
    AccessError,
    ArgumentError,
    BusyError,
    ChangedError,
    ClosedError,
    ConditionError,
    ConflictError,
    DamagedError,
    Error,
    FullError,
    GateError,
    NotFoundError,
    SignatureError,
    UnavailableError,
    UnsupportedError,
    WatchError,
    WrongTypeError,
)
from nuthatch.options import (
    ConnectOptions,
    OpenOptions,
    SnapshotOptions,
    SnapshotWatchOptions,
    SnapshotWriterOptions,
)
from nuthatch.snapshots import build_snapshot, open_snapshot, watch_snapshot, write_snapshot

# The other engines are for Linux.
if sys.platform == "linux":
    from nuthatch import aio, chunks, delivery, jobs
    from nuthatch._native import (
        Ack,
        AsyncReadTransaction,
        AsyncScan,
        AsyncStore,
        AsyncTable,
        AsyncTransaction,
        AsyncWatch,
        AsyncWriter,
        Batch,
        Change,
        Compacted,
        Entry,
        ReadTransaction,
        RowBatch,
        Scan,
        Stat,
        Store,
        Table,
        TableStat,
        Transaction,
        UrlCounts,
        Verified,
        Watch,
        Writer,
        Written,
        _compact_store,
        _connect_store,
        _open_store,
        _verify_store,
    )
    from nuthatch.jobs import PopulateReport, populate
    from nuthatch.urls import UrlFile, open_url

__all__ = [
    "AccessError",
    "Ack",
    "ArgumentError",
    "ArrowColumn",
    "AsyncReadTransaction",
    "AsyncScan",
    "AsyncStore",
    "AsyncTable",
    "AsyncTransaction",
    "AsyncWatch",
    "AsyncWriter",
    "Batch",
    "BusyError",
    "Change",
    "ChangedError",
    "ClosedError",
    "Compacted",
    "ConditionError",
    "ConflictError",
    "ConnectOptions",
    "DamagedError",
    "Entry",
    "Error",
    "FullError",
    "GateError",
    "NotFoundError",
    "OpenOptions",
    "PopulateReport",
    "ReadTransaction",
    "RowBatch",
    "Scan",
    "SignatureError",
    "Snapshot",
    "SnapshotOptions",
    "SnapshotStats",
    "SnapshotSummary",
    "SnapshotWatch",
    "SnapshotWatchOptions",
    "SnapshotWatchStatus",
    "SnapshotWriter",
    "SnapshotWriterOptions",
    "Stat",
    "Store",
    "Table",
    "TableStat",
    "Transaction",
    "UnavailableError",
    "UnsupportedError",
    "UrlCounts",
    "UrlFile",
    "Verified",
    "Watch",
    "WatchError",
    "Writer",
    "Written",
    "WrongTypeError",
    "__version__",
    "aio",
    "build_snapshot",
    "chunks",
    "compact",
    "connect",
    "delivery",
    "errors",
    "jobs",
    "open",
    "open_snapshot",
    "open_url",
    "populate",
    "verify",
    "watch_snapshot",
    "write_snapshot",
]


def open(path: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> Store:
    """Opens the store in a folder.

    Args:
        path: The folder. It is created if it does not exist, unless ``create=False``.
        **options: Settings of ``nuthatch.OpenOptions``.

    Returns:
        The store.

    Raises:
        BusyError: This process has the folder open already, or a program whose LMDB uses other
            locks has it open.
        DamagedError: The files are damaged, or not those of a store.
    """
    return _open_store(path, False, **options)


def connect(address: str, **options: Unpack[ConnectOptions]) -> Store:
    """Connects to a store behind a server.

    Args:
        address: ``grpc://host:port``, or ``grpcs://host:port`` for TLS.
        **options: Settings of ``nuthatch.ConnectOptions``.

    Returns:
        The store.

    Raises:
        UnavailableError: The server cannot be reached within ``connect_timeout``.
    """
    return _connect_store(address, False, **options)


def compact(path: str | os.PathLike[str]) -> Compacted:
    """Compacts the store in a folder in place.

    Args:
        path: The folder of the store.

    Returns:
        The size of the file before and after.

    Raises:
        BusyError: A process has the store open.
    """
    return _compact_store(path, False)


def verify(path: str | os.PathLike[str]) -> Verified:
    """Checks all pages of the store in a folder without opening it. No process may write meanwhile.

    Args:
        path: The folder of the store.

    Returns:
        The number of pages and rows.

    Raises:
        DamagedError: The file is damaged.
    """
    return _verify_store(path, False)
