"""Stores for asyncio: the functions of ``nuthatch``, whose calls return awaitables.

No call blocks the event loop. Cancelling a task ends the operation that it waits for: a scan with
its read transaction, the wait for the write lock, or a call to a server.
"""

import os
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Unpack

from nuthatch._native import (
    AsyncStore,
    Compacted,
    Verified,
    _compact_store,
    _connect_store,
    _open_store,
    _verify_store,
)
from nuthatch.options import ConnectOptions, OpenOptions

__all__ = ["Opening", "compact", "connect", "open", "verify"]


class Opening:
    """A store that is not open yet. ``await`` opens it; ``async with`` also closes it."""

    def __init__(self, start: Callable[[], Awaitable[AsyncStore]]) -> None:
        """Stores the function that opens the store; nothing is opened before the ``await``."""
        self._start = start
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[object, None, AsyncStore]:
        return self._start().__await__()

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._start()
        return self._store

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._store is not None:
            await self._store.close()


def open(path: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> Opening:
    """Opens the store in a folder.

    Args:
        path: The folder. It is created if it does not exist, unless ``create=False``.
        **options: Settings of ``nuthatch.OpenOptions``.

    Returns:
        An ``Opening``, to use with ``await`` or ``async with``.
    """
    return Opening(lambda: _open_store(path, True, **options))


def connect(address: str, **options: Unpack[ConnectOptions]) -> Opening:
    """Connects to a store behind a server.

    Args:
        address: ``grpc://host:port``, or ``grpcs://host:port`` for TLS.
        **options: Settings of ``nuthatch.ConnectOptions``.

    Returns:
        An ``Opening``, to use with ``await`` or ``async with``.
    """
    return Opening(lambda: _connect_store(address, True, **options))


async def compact(path: str | os.PathLike[str]) -> Compacted:
    """Compacts the store in a folder in place.

    Args:
        path: The folder of the store.

    Returns:
        The size of the file before and after.

    Raises:
        BusyError: A process has the store open.
    """
    return await _compact_store(path, True)


async def verify(path: str | os.PathLike[str]) -> Verified:
    """Checks all pages of the store in a folder without opening it. No process may write meanwhile.

    Args:
        path: The folder of the store.

    Returns:
        The number of pages and rows.

    Raises:
        DamagedError: The file is damaged.
    """
    return await _verify_store(path, True)
