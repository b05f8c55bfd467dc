"""Nuthatch: an ordered key-value store, in the process or behind a server, and a chunk cache.

``open`` and ``connect`` answer a :class:`Store` whose calls wait; ``nuthatch.aio`` has the same for
asyncio. ``nuthatch.chunks`` keeps ranges of remote objects on local disk; ``nuthatch.fs`` is a
filesystem for fsspec that reads through it, and ``open_url`` a file.
"""

import os
from typing import Unpack

from nuthatch import aio, chunks, errors
from nuthatch._native import (
    Ack,
    AsyncScan,
    AsyncSnapshot,
    AsyncStore,
    AsyncTable,
    AsyncTransaction,
    AsyncWatch,
    AsyncWriter,
    Batch,
    Change,
    Compacted,
    Entry,
    RowBatch,
    Scan,
    Snapshot,
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
    __version__,
    _compact_store,
    _connect_store,
    _open_store,
    _verify_store,
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
    NotFoundError,
    UnavailableError,
    WatchError,
)
from nuthatch.options import ConnectOptions, OpenOptions
from nuthatch.urls import UrlFile, open_url

__all__ = [
    "AccessError",
    "Ack",
    "ArgumentError",
    "AsyncScan",
    "AsyncSnapshot",
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
    "NotFoundError",
    "OpenOptions",
    "RowBatch",
    "Scan",
    "Snapshot",
    "Stat",
    "Store",
    "Table",
    "TableStat",
    "Transaction",
    "UnavailableError",
    "UrlCounts",
    "UrlFile",
    "Verified",
    "Watch",
    "WatchError",
    "Writer",
    "Written",
    "__version__",
    "aio",
    "chunks",
    "compact",
    "connect",
    "errors",
    "open",
    "open_url",
    "verify",
]


def open(path: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> Store:
    """Open the store in a folder, which is made unless ``create=False``."""
    return _open_store(path, False, **options)


def connect(address: str, **options: Unpack[ConnectOptions]) -> Store:
    """Connect to a store at ``grpc://host:port``, or ``grpcs://host:port`` with TLS."""
    return _connect_store(address, False, **options)


def compact(path: str | os.PathLike[str]) -> Compacted:
    """Make the store in a folder as small as it can be. Nobody may have it open."""
    return _compact_store(path, False)


def verify(path: str | os.PathLike[str]) -> Verified:
    """Check all pages of the store in a folder without opening it. Nobody may write meanwhile."""
    return _verify_store(path, False)
