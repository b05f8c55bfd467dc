"""Delivery of snapshots to many machines: publication, generations, and followers.

A destination is a folder, or a path of an object store such as ``s3://bucket/path``, ``gs://`` or
``az://``, whose credentials come from the environment. The functions of ``nuthatch.aio`` with the
same names are for asyncio.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from nuthatch._native import _generations, _open_follower, _publish, _roll_back

if TYPE_CHECKING:
    from nuthatch._native import _FileFields, _GenerationFields, _PublishedFields, _SwappedFields

__all__ = [
    "DELTA_LIMIT",
    "DataFile",
    "Follower",
    "Generation",
    "Published",
    "Swapped",
    "generations",
    "publish",
    "roll_back",
]

_Path: TypeAlias = str | os.PathLike[str]

DELTA_LIMIT = 1 << 30
"""The default of ``delta_limit``: files up to 1 GiB have deltas."""


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a publication."""

    generation: int
    """The number of the current generation."""
    is_unchanged: bool
    """Whether the current generation already had the same contents. There is no new one then."""
    bytes: int
    """Length of the files of the generation in bytes."""
    uploaded_bytes: int
    """Bytes that were uploaded, deltas included. Files that an earlier generation has are not
    uploaded again.
    """
    delta_bytes: int
    """Bytes of the deltas that lead to files of the generation."""
    delta_failures: tuple[str, ...]
    """Why files have no delta, if something prevented one."""
    unread_objects: tuple[str, ...]
    """Why objects of a store that were used again were not verified: they could not be read. They
    have the right length.
    """
    removed: tuple[int, ...]
    """The numbers of generations that the destination no longer has."""
    cleanup_failure: str | None
    """Why objects that no generation needs could not be removed. A later publication tries again.
    """


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a generation."""

    name: str
    """The name of the file at followers."""
    bytes: int
    """Its length in bytes."""
    blake3: str
    """The BLAKE3 hash of its contents, in hexadecimal digits."""
    object: str
    """The name of its object in the folder ``objects`` of the destination."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A snapshot that was published."""

    id: int
    """The number of the generation."""
    created: datetime
    """The time of publication, in UTC."""
    entries: int
    """The number of entries of the snapshot."""
    bytes: int
    """Length of all files in bytes."""
    name: str
    """The name of the file that programs open."""
    metadata: Mapping[str, str]
    """The metadata of the snapshot. Bytes that are not UTF-8 are replaced by U+FFFD."""
    is_current: bool
    """Whether followers fetch this generation."""
    files: tuple[DataFile, ...]
    """The file of the snapshot; for a set its manifest, then its shards."""


@dataclass(frozen=True, slots=True)
class Swapped:
    """A generation that a follower swapped in."""

    generation: int
    """The number of the generation."""
    created: datetime
    """The time of its publication, in UTC."""
    path: Path
    """The path that programs open."""
    fetched_bytes: int
    """Bytes that were fetched, deltas included. Files of the generation before are not fetched
    again.
    """
    built_files: int
    """Number of files that were built from deltas."""
    delta_failures: tuple[str, ...]
    """Why files were fetched although there was a delta."""


def publish(
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
    """Publishes a snapshot as a new generation of a destination.

    Verifies the snapshot, uploads its files, and replaces the manifest if no other publisher has
    replaced it since the call began. If the current generation has the same contents, there is no
    new one. ``nuthatch publish`` does the same.

    Args:
        file: The snapshot; for a set, its manifest.
        destination: A folder or an address such as ``s3://bucket/path``.
        name: The name that the snapshot has at followers. By default that of the current
            generation, or that of the file if there is none.
        sign_key: File of the Ed25519 private key that signs the manifest, in PEM.
        trust_keys: Files of public keys that may have signed the manifest before.
        keep: Maximum number of generations that are kept, the new one included.
        keep_age: Maximum age of the generations that are kept, in seconds.
        delta_limit: Maximum length of a file for which a delta from the current generation is made,
            in bytes; 0 for no deltas.

    Returns:
        The number of the generation, and what was uploaded and removed.

    Raises:
        NotFoundError: The file does not exist.
        DamagedError: The file is not a valid snapshot, or the manifest is damaged.
        ConflictError: Another publisher has replaced the manifest. Nothing was published.
        SignatureError: The manifest has a signature by another key, or needs one.
        UnavailableError: The destination cannot be read or written.
        ArgumentError: The address, a key or another argument is invalid.
    """
    limits = (keep, keep_age, delta_limit)
    arguments = _publication(file, destination, name, sign_key, trust_keys, limits)
    return _published(_publish(False, *arguments))


def generations(destination: _Path, *, trust_keys: Iterable[_Path] = ()) -> list[Generation]:
    """Returns the generations of a destination, in ascending order of their numbers.

    Args:
        destination: A folder or an address such as ``s3://bucket/path``.
        trust_keys: Files of Ed25519 public keys, of which one must have signed the manifest.

    Returns:
        The generations.

    Raises:
        NotFoundError: Nothing was published there.
        SignatureError: The manifest has no signature by one of the keys.
        DamagedError: The manifest is damaged.
        UnavailableError: The destination cannot be read.
    """
    return _listed(_generations(False, os.fspath(destination), _paths(trust_keys)))


def roll_back(
    destination: _Path,
    generation: int,
    *,
    sign_key: _Path | None = None,
    trust_keys: Iterable[_Path] = (),
) -> list[Generation]:
    """Makes another generation the current one, older or newer.

    Args:
        destination: A folder or an address such as ``s3://bucket/path``.
        generation: The number of the generation.
        sign_key: File of the Ed25519 private key that signs the manifest, in PEM.
        trust_keys: Files of public keys that may have signed the manifest before.

    Returns:
        All generations.

    Raises:
        NotFoundError: The destination does not have this generation.
        ConflictError: Another publisher has replaced the manifest. Nothing was changed.
        SignatureError: The manifest has a signature by another key, or needs one.
        UnavailableError: The destination cannot be read or written.
    """
    address, keys = os.fspath(destination), _paths(trust_keys)
    return _listed(_roll_back(False, address, generation, sign_key, keys))


class Follower:
    """Keeps a folder at the current generation of a destination.

    ``check`` fetches the current generation and swaps it in. Call it at intervals.
    Programs watch ``path``, for example with ``nuthatch.watch_snapshot``. A ``Follower`` is a
    context manager that closes it.
    """

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
            bandwidth: Maximum number of bytes that are fetched in a second; no limit by default.
            previous: Number of generations before the current one that stay in the folder.
            delta_limit: Maximum length of a file that is built from deltas, in bytes; 0 to fetch
                whole files only. A thread of the lowest priority builds it in at most 256 MiB.

        Raises:
            BusyError: Another follower uses the folder.
            ArgumentError: The address, a key or another argument is invalid.
        """
        keys = _paths(trust_keys)
        self._native = _open_follower(
            False, os.fspath(source), os.fspath(folder), keys, bandwidth, previous, delta_limit
        )

    def check(self) -> Swapped | None:
        """Checks the source once, and swaps in its current generation.

        After an error, the folder still has the generation that it had, and the next check
        continues what was fetched. Calls of several threads run one after the other.

        Returns:
            The generation that was swapped in; ``None`` if the folder has the current one.

        Raises:
            NotFoundError: Nothing was published there.
            UnavailableError: The source cannot be read.
            SignatureError: The manifest has no signature by one of the keys.
            DamagedError: A file has other bytes than the manifest says, or the manifest is damaged.
            ChangedError: The manifest is older than that of the generation in the folder.
            ClosedError: The follower is closed.
        """
        return _swapped(self._native.check())

    def close(self) -> None:
        """Releases the folder, after a check that runs. The generation stays in the folder."""
        self._native.close()

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _paths(paths: Iterable[_Path]) -> list[_Path]:
    # A path is an iterable of characters, which would be read as files.
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def _publication(
    file: _Path,
    destination: _Path,
    name: str | None,
    sign_key: _Path | None,
    trust_keys: Iterable[_Path],
    limits: tuple[int, float | None, int],
) -> tuple[_Path, str, str | None, _Path | None, list[_Path], int, float | None, int]:
    return file, os.fspath(destination), name, sign_key, _paths(trust_keys), *limits


def _published(fields: _PublishedFields) -> Published:
    generation, is_unchanged, sizes, reasons, removed, failure = fields
    delta_failures, unread_objects = map(tuple, reasons)
    lists = (delta_failures, unread_objects, tuple(removed))
    return Published(generation, is_unchanged, *sizes, *lists, failure)


def _listed(generations: list[_GenerationFields]) -> list[Generation]:
    return [_generation(*fields) for fields in generations]


def _generation(
    number: int,
    created: datetime,
    entries: int,
    length: int,
    name: str,
    metadata: dict[str, str],
    is_current: bool,
    files: list[_FileFields],
) -> Generation:
    data_files = tuple(DataFile(*file) for file in files)
    created = created.astimezone(UTC)
    return Generation(number, created, entries, length, name, metadata, is_current, data_files)


def _swapped(fields: _SwappedFields | None) -> Swapped | None:
    if fields is None:
        return None
    generation, created, path, fetched, built, failures = fields
    created = created.astimezone(UTC)
    return Swapped(generation, created, Path(path), fetched, built, tuple(failures))
