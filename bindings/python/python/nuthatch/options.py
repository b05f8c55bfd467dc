"""Arguments by name that several calls take, as types."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "Bounds",
    "ChunksOptions",
    "Condition",
    "ConnectOptions",
    "OpenOptions",
    "ParallelScanOptions",
    "ScanOptions",
    "WriterOptions",
]


class OpenOptions(TypedDict, total=False):
    """How a store in this process is opened."""

    create: bool
    """Whether it is made where there is none; ``True`` by default."""
    read_only: bool
    """Nothing changes, and writes fail."""
    durability: Literal["sync", "group", "none"]
    """What commits wait for, unless a transaction says otherwise, told by what a crash of the
    machine may lose: ``sync``, the default, nothing; ``group`` the last commit; ``none`` any number
    of the last ones, and perhaps the store."""
    reserve: int
    """Addresses to begin with, in bytes; 1 TiB by default. They cost nothing."""
    limit: int
    """The most that the file may grow to, in bytes."""
    growth_patience: float
    """How long a map that must move waits for transactions, in seconds; 5 by default."""
    tables: int
    """How many tables can be open; 256 by default."""
    readers: int
    """How many read transactions can be open in all processes; 1022 by default."""
    threads: int
    """How many threads read for asynchronous scans; one for each core by default."""
    allow_network_filesystem: bool
    """Whether to open a store on a network filesystem, which is refused by default. Machines do
    not share the memory maps of a store, so only processes of one machine may use it."""


class ConnectOptions(TypedDict, total=False):
    """How a store behind a server is reached."""

    token: str
    """A token to show with each call."""
    ca: str | os.PathLike[str]
    """Certificates in PEM that the server's must lead to, for ``grpcs://``; without them,
    those that the system trusts."""
    cert: str | os.PathLike[str]
    """A certificate to show, in PEM."""
    key: str | os.PathLike[str]
    """Its private key, in PEM."""
    server_name: str
    """The name that the server's certificate must have, if not that of the address."""
    insecure: bool
    """Sends the token without TLS, too, to other machines than this one."""
    connect_timeout: float
    """How long ``connect`` may take, with retries, and each later attempt to reconnect, in seconds;
    10 by default."""
    timeout: float
    """How long a call with one answer may take, with retries, in seconds; 30 by default. The same
    time limits the wait for the beginning of a stream, and for the next answer of a
    transaction."""
    retries: int
    """How often a call is tried again that may be; 3 by default. With 0, watches and writers do not
    reconnect either."""
    reconnect: float
    """How long a watch or a writer tries to reach the server again after it was lost, in seconds;
    30 by default."""
    message_bytes: int
    """How long an answer may be, in bytes; 64 MiB by default."""


class Bounds(TypedDict, total=False):
    """Which keys; without bounds, all of them. ``prefix`` and the others go together."""

    from_: ReadableBuffer | None
    """From this key on, itself included."""
    after: ReadableBuffer | None
    """After this key, itself excluded."""
    to: ReadableBuffer | None
    """Up to this key, itself included."""
    before: ReadableBuffer | None
    """Up to this key, itself excluded."""
    prefix: ReadableBuffer | None
    """Keys that begin with this."""


class ParallelScanOptions(Bounds, total=False):
    """What a scan by several threads reads, and in which way."""

    reverse: bool
    """From the greatest key on."""
    keys_only: bool
    """Keys without values: these are empty."""
    batch_rows: int | None
    """How many rows a batch has, at most, in a store of this process; 4096 by default."""
    batch_bytes: int | None
    """After how many bytes a batch ends; 4 MiB by default, 256 KiB from a server."""


class ScanOptions(ParallelScanOptions, total=False):
    """What a scan reads, and in which way."""

    limit: int | None
    """So many rows at most."""


class Condition(TypedDict, total=False):
    """What must hold of a key: exactly one of these."""

    absent: bool
    """It is not there."""
    present: bool
    """It is there."""
    equals: ReadableBuffer | None
    """It is there with this value."""
    version: int | None
    """It is there in this version, in a stamped table."""


class WriterOptions(TypedDict, total=False):
    """How a writer groups and waits. All but ``queue_bytes`` are for stores of this process."""

    queue_bytes: int | None
    """How many bytes can wait before whoever writes waits as well; 64 MiB by default, 16 MiB of
    a server."""
    durability: Literal["sync", "group", "none"] | None
    """What an acknowledgement says; that of the store by default."""
    failure: Literal["alone", "group"] | None
    """What happens to a group of which one batch fails: the others are committed, or fail too."""
    linger: float | None
    """How long a group waits to become larger, in seconds; not at all by default."""


class ChunksOptions(TypedDict, total=False):
    """How the folder of a chunk cache is opened."""

    limit: int | None
    """How many bytes all its files may have together, from 4 MiB on; 10 GiB for a new folder. Holds
    from then on for all processes. If the folder has more, opening it evicts the excess at once,
    the least used first, without a question or a report; what is pinned stays."""
    min_free: int | None
    """How many bytes of the file system stay free; none unless anybody said. Holds from then on for
    all processes."""
    check: Literal["never", "once", "always"] | None
    """How often bytes are compared with their checksum: ``once``, the default, when this process
    first reads them."""
    patience: float | None
    """How long a put waits for others that change the folder, in seconds; 2 by default.
    After that its bytes are not kept."""
    segment_len: int | None
    """What a process reserves, and what is evicted, at once, in bytes; by default between a
    sixteenth and a hundredth of the limit."""
    parts: int | None
    """For how many chunks the index has room at least; by default one for each 16 KiB of the limit.
    It grows when there are more. Holds from then on for all processes."""
    share_with_group: bool | None
    """Whether the group of the folder may use it: modes 2770 and 0660 instead of 0700 and 0600.
    Holds from then on for all processes."""
    open_files: int | None
    """How many files are held open for reading; 256 by default."""
    guard: bool | None
    """Whether a file that somebody truncates while it is mapped is survived, with a handler for
    ``SIGBUS``; ``True`` by default."""
