"""Stores for asyncio: the names of ``nuthatch``, with awaitables for answers.

Nothing here blocks the event loop. A task that is cancelled ends what it waited for: the scan and
its transaction, the turn to write, the call to the server.
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
    """A store that is about to be opened: await it, or use it with ``async with``."""

    def __init__(self, start: Callable[[], Awaitable[AsyncStore]]) -> None:
        """Nothing happens before it is awaited."""
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
    """Open the store in a folder, which is made unless ``create=False``."""
    return Opening(lambda: _open_store(path, True, **options))


def connect(address: str, **options: Unpack[ConnectOptions]) -> Opening:
    """Connect to a store at ``grpc://host:port``, or ``grpcs://host:port`` with TLS."""
    return Opening(lambda: _connect_store(address, True, **options))


async def compact(path: str | os.PathLike[str]) -> Compacted:
    """Make the store in a folder as small as it can be. Nobody may have it open."""
    return await _compact_store(path, True)


async def verify(path: str | os.PathLike[str]) -> Verified:
    """Check all pages of the store in a folder without opening it. Nobody may write meanwhile."""
    return await _verify_store(path, True)
