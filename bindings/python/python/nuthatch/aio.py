"""Stores for asyncio: the functions of ``nuthatch``, whose calls return awaitables.

No call blocks the event loop. Cancelling a task ends the operation that it waits for: a scan with
its read transaction, the wait for the write lock, or a call to a server. The functions and the
class of ``nuthatch.delivery`` are here, too.
"""

import os
from collections.abc import Awaitable, Callable, Generator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, Unpack

from nuthatch._native import (
    AsyncStore,
    Compacted,
    Verified,
    _compact_store,
    _connect_store,
    _generations,
    _open_follower,
    _open_store,
    _publish,
    _roll_back,
    _verify_store,
)
from nuthatch.delivery import (
    DELTA_LIMIT,
    Generation,
    Published,
    Swapped,
    _listed,
    _paths,
    _publication,
    _published,
    _swapped,
)
from nuthatch.options import ConnectOptions, OpenOptions

__all__ = [
    "Follower",
    "Opening",
    "compact",
    "connect",
    "generations",
    "open",
    "publish",
    "roll_back",
    "verify",
]

_Path: TypeAlias = str | os.PathLike[str]


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


async def publish(
    file: _Path,
    destination: _Path,
    *,
    name: str | None = None,
    sign_key: _Path | None = None,
    trust_keys: Iterable[_Path] = (),
    keep: int = 10,
    keep_age: float | None = None,
    delta_limit: int = DELTA_LIMIT,
) -> Published:
    """Publishes a snapshot as a new generation, as ``nuthatch.delivery.publish`` does.

    A cancelled call may have replaced the manifest, or not.

    Args:
        file: The snapshot; for a set, its manifest.
        destination: A folder or an address such as ``s3://bucket/path``.
        name: The name that the snapshot has at followers.
        sign_key: File of the Ed25519 private key that signs the manifest, in PEM.
        trust_keys: Files of public keys that may have signed the manifest before.
        keep: Maximum number of generations that are kept, the new one included.
        keep_age: Maximum age of the generations that are kept, in seconds.
        delta_limit: Maximum length of a file for which a delta from the current generation is made,
            in bytes; 0 for no deltas.

    Returns:
        The number of the generation, and what was uploaded and removed.
    """
    limits = (keep, keep_age, delta_limit)
    arguments = _publication(file, destination, name, sign_key, trust_keys, limits)
    return _published(await _publish(True, *arguments))


async def generations(destination: _Path, *, trust_keys: Iterable[_Path] = ()) -> list[Generation]:
    """Returns the generations of a destination, as ``nuthatch.delivery.generations`` does.

    Args:
        destination: A folder or an address such as ``s3://bucket/path``.
        trust_keys: Files of Ed25519 public keys, of which one must have signed the manifest.

    Returns:
        The generations, in ascending order of their numbers.
    """
    return _listed(await _generations(True, os.fspath(destination), _paths(trust_keys)))


async def roll_back(
    destination: _Path,
    generation: int,
    *,
    sign_key: _Path | None = None,
    trust_keys: Iterable[_Path] = (),
) -> list[Generation]:
    """Makes another generation the current one, as ``nuthatch.delivery.roll_back`` does.

    Args:
        destination: A folder or an address such as ``s3://bucket/path``.
        generation: The number of the generation.
        sign_key: File of the Ed25519 private key that signs the manifest, in PEM.
        trust_keys: Files of public keys that may have signed the manifest before.

    Returns:
        All generations.
    """
    address, keys = os.fspath(destination), _paths(trust_keys)
    return _listed(await _roll_back(True, address, generation, sign_key, keys))


class Follower:
    """A folder that follows a destination, as ``nuthatch.delivery.Follower``."""

    def __init__(
        self,
        source: _Path,
        folder: _Path,
        *,
        trust_keys: Iterable[_Path] = (),
        bandwidth: int | None = None,
        previous: int = 1,
        delta_limit: int = DELTA_LIMIT,
    ) -> None:
        """Prepares the folder, which is created if it does not exist. Fetches nothing.

        Args:
            source: The destination, or the ``https://`` address of a server of its files.
            folder: The folder.
            trust_keys: Files of Ed25519 public keys, of which one must have signed the manifest.
            bandwidth: Maximum number of bytes that are fetched in a second.
            previous: Number of generations before the current one that stay in the folder.
            delta_limit: Maximum length of a file that is built from deltas, in bytes; 0 to fetch
                whole files only. A thread of the lowest priority builds it in at most 256 MiB.
        """
        keys = _paths(trust_keys)
        self._native = _open_follower(
            True, os.fspath(source), os.fspath(folder), keys, bandwidth, previous, delta_limit
        )

    async def check(self) -> Swapped | None:
        """Checks the source once, and swaps in its current generation.

        If the task is cancelled, the next check continues what was fetched.

        Returns:
            The generation that was swapped in; ``None`` if the folder has the current one.
        """
        return _swapped(await self._native.check())

    async def close(self) -> None:
        """Releases the folder, after a check that runs. The generation stays in the folder."""
        await self._native.close()

    @property
    def path(self) -> Path | None:
        """Returns the path that programs open; ``None`` while the folder has no generation."""
        return self._native.path

    @property
    def generation(self) -> int | None:
        """Returns the number of the generation in the folder."""
        return self._native.generation

    @property
    def created(self) -> datetime | None:
        """Returns the time at which the generation in the folder was published, in UTC."""
        created = self._native.created
        return created and created.astimezone(UTC)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
