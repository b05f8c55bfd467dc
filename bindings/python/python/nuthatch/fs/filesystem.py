"""The filesystem: listing and writing call its target, and reads use the cache."""

from __future__ import annotations

import asyncio
import os
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import fsspec
from fsspec.asyn import AsyncFileSystem, get_loop, sync
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.core import split_protocol
from fsspec.implementations.chained import ChainedFileSystem
from fsspec.utils import isfilelike, stringify_path

from nuthatch.chunks import Chunks
from nuthatch.errors import ArgumentError, ChangedError, Error
from nuthatch.folders import open_if_possible
from nuthatch.fs.addresses import address_of
from nuthatch.fs.files import AsyncCachedFile, CachedFile
from nuthatch.fs.objects import CachedObject
from nuthatch.fs.origins import Counts, Origin, together
from nuthatch.fs.recorded import Recorded
from nuthatch.fs.versions import Version

# Methods that call the target only, blocking and asynchronous.
_READING_METHODS = ("ls", "find", "exists", "isfile", "isdir", "du")
# Methods that change the target, with the number of paths among their first arguments.
_CHANGING_METHODS = {
    "mkdir": 1,
    "makedirs": 1,
    "pipe_file": 1,
    "rm": 1,
    "rm_file": 1,
    "cp_file": 2,
    "mv": 2,
}
# Bytes of a long object that are in memory while it is copied.
_WINDOW = 32 << 20
# Maximum number of attempts to read without an open file, if the object changes during the read.
_TRIES = 3


class NuthatchCache(AsyncFileSystem, ChainedFileSystem):
    """A filesystem that reads through a chunk cache, which all processes share.

    Listing, information and writing are those of the target. A file has the version that the target
    has when the file is opened, and all bytes are of that version. If the object changes while it
    is read, a ``nuthatch.ChangedError`` is raised. Opening it again reads the new version.
    """

    protocol: ClassVar[str] = "nuthatch"
    _pid: int
    _strip_tokenize_options = ("fo",)

    def __init__(
        self,
        target: str | fsspec.AbstractFileSystem | None = None,
        *,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        fs: fsspec.AbstractFileSystem | None = None,
        fo: str | None = None,
        cache: str | os.PathLike[str] | Chunks | None = None,
        limit: int | None = None,
        block_size: int = 1 << 20,
        max_age: float = 0.0,
        read_ahead: int = 16 << 20,
        merge: int = 1 << 20,
        request_size: int = 8 << 20,
        unversioned: Literal["open", "size"] = "open",
        offline: bool = False,
        max_stale: float | None = None,
        **options: Any,
    ) -> None:
        """Wraps a filesystem, which is given by a protocol, a URL or an instance.

        If the folder of the cache cannot be opened, reads go to the target, and a
        ``RuntimeWarning`` is issued.

        The target is unavailable if it cannot be reached, does not return a version within a
        second, or, over HTTP, responds with 429, 500, 502, 503 or 504.

        Args:
            target: The filesystem; local files by default. At most one of ``target``,
                ``target_protocol`` and ``fs`` is given.
            target_protocol: Protocol of the filesystem, instead of ``target``.
            target_options: Arguments of the filesystem, such as credentials.
            fs: The filesystem, instead of ``target``.
            fo: Ignored; fsspec passes it for chained URLs.
            cache: The folder of the cache, or an open one; by default that of this user's cache.
            limit: Maximum size of the folder in bytes, for all processes from then on. If the
                folder is larger, the excess is evicted at once.
            block_size: Length of a block in bytes, which is the minimum that is fetched; 1 MiB by
                default.
            max_age: Seconds for which a version is used before it is requested from the target
                again; 0 by default, so that each open makes a request.
            read_ahead: Maximum number of bytes that are fetched ahead of a sequential reader; 16
                MiB by default.
            merge: Maximum number of cached bytes between missing ranges that are fetched together;
                1 MiB by default.
            request_size: Maximum number of bytes of one request; 8 MiB by default.
            unversioned: How long to keep objects without a validator: with ``open``, while they are
                open; with ``size``, while their length does not change, which misses changes that
                keep the length.
            offline: Whether to read recorded versions from the cache only, without calls to the
                target. Bytes that are not in the cache raise a ``nuthatch.UnavailableError``.
            max_stale: Maximum age in seconds of a version that is read while the target is
                unavailable, since the target last confirmed it. By default the age of
                ``Cache-Control: stale-if-error``, if the target sends that; otherwise reads fail
                after retries. With ``offline``, older versions are refused.
            **options: Arguments of ``fsspec.AbstractFileSystem``.

        Raises:
            ValueError: Several filesystems are given, or an asynchronous one for a cache that is
                not.
        """
        super().__init__(**options)
        given = [each for each in (target, target_protocol, fs) if each is not None]
        if len(given) > 1:
            raise ValueError("expected one of target, target_protocol and fs, found several")
        made = self._make_target(given[0] if given else "file", target_options or {})
        self._origin = Origin(made, offline=offline)
        # fsspec defines these as class methods, which do not know the target.
        own: dict[str, Any] = self.__dict__
        own.update(_strip_protocol=self._strip, _parent=made._parent)
        self.root_marker = made.root_marker
        self._chunks = open_if_possible(cache, limit=limit)
        self._recorded = Recorded(self._origin, self._chunks, max_stale)
        self.block_size = block_size
        self.max_age = max_age
        self.read_ahead = 0 if offline else read_ahead
        self._merging = {"max_gap": merge, "max_request_len": request_size}
        self._unversioned = unversioned
        # Versions by path with the time of the request, and paths that were opened here for
        # writing, whose versions are not reused.
        self._known: dict[str, tuple[Version, float]] = {}
        self._written: set[str] = set()

    def _make_target(self, target: Any, options: dict[str, Any]) -> Any:
        if not isinstance(target, str):
            if target.async_impl and target.asynchronous != self.asynchronous:
                raise ValueError("target: expected one that is asynchronous if the cache is")
            return target
        url = target if "://" in target else f"{target}://"
        cls = fsspec.get_filesystem_class(split_protocol(url)[0])
        if cls.async_impl and self.asynchronous:
            options = {"asynchronous": True, **options}
        return cls(**{**cls._get_kwargs_from_urls(url), **options})

    # Target and event loop of this process.

    @property
    def target(self) -> Any:
        """Returns the filesystem behind the cache."""
        self._settle()
        return self._origin.target

    @property
    def loop(self) -> Any:
        """Returns the event loop that runs the requests."""
        self._settle()
        return self._loop

    def _settle(self) -> None:
        """Replaces the event loop and the connections of the parent in a child made by ``fork``."""
        if self._pid == os.getpid() or self.asynchronous:
            return
        target = self._origin.target
        if target.async_impl:
            # Open objects use the same `Origin`, so it is changed in place.
            self._origin.target = type(target)(*target.storage_args, **target.storage_options)
        self._loop = get_loop()
        self._pid = os.getpid()

    @property
    def chunks(self) -> Chunks:
        """Returns the open folder of the cache.

        Raises:
            Error: The folder cannot be opened, and reads go to the target.
        """
        if self._chunks is None:
            raise Error("the folder of the cache cannot be opened; reads pass through", "folder")
        return self._chunks

    @property
    def counts(self) -> Counts:
        """Returns the counters of fetches of this filesystem in this process."""
        return replace(self._origin.counts)

    def start(self, work: Coroutine[Any, Any, object]) -> Future[object]:
        """Starts a coroutine on the event loop of the filesystem.

        Args:
            work: The coroutine.

        Returns:
            Its future, for a thread that may block.
        """
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    # Paths, which are those of the target.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return re.sub(r"^nuthatch(://|::)", "", stringify_path(path))

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        inner = re.sub(r"^nuthatch://", "", path)
        protocol = split_protocol(inner)[0]
        if protocol is None:
            return {}
        options = fsspec.get_filesystem_class(protocol)._get_kwargs_from_urls(inner)
        found = {"target_protocol": protocol}
        return {**found, "target_options": options} if options else found

    def _strip(self, path: Any) -> Any:
        if isinstance(path, list):
            return [self._strip(each) for each in path]
        return self.target._strip_protocol(type(self)._strip_protocol(path))

    def unstrip_protocol(self, name: str) -> str:
        """Returns the URL of a path, which includes the URL of the target."""
        return f"nuthatch://{self.target.unstrip_protocol(self._strip(name))}"

    @property
    def sep(self) -> str:
        """Returns the separator of path components."""
        return str(self.target.sep)

    @property
    def fsid(self) -> str:
        """Returns the identifier of this filesystem."""
        return f"nuthatch_{self.target.fsid}"

    # Methods that call the target.

    async def _call_target(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self._settle()
        if self._origin.offline and name in ("exists", "isfile", "isdir"):
            return name != "isdir" and await self._recorded.known(args[0]) is not None
        return await self._origin.call(name, *args, **kwargs)

    async def _info(self, path: str, **kwargs: Any) -> Any:
        self._settle()
        path = self._strip(path)
        known = await self._recorded.known(path) if self._origin.offline else None
        if known is not None:
            return {"name": path, "size": known.size, "type": "file"}
        return await self._origin.info(path, **kwargs)

    async def _glob(self, path: str, **kwargs: Any) -> Any:
        found = await self._call_target("glob", self._strip(path), **kwargs)

        # A name that is a URL gets the protocol of this filesystem, so that it is not read past the
        # cache.
        def named(name: str) -> str:
            return f"nuthatch://{name}" if "://" in name else name

        if isinstance(found, dict):
            return {named(name): info for name, info in found.items()}
        return [named(name) for name in found]

    async def _write(self, name: str, *args: Any, **kwargs: Any) -> Any:
        paths = [self._strip(path) for path in args[: _CHANGING_METHODS[name]]]
        args = (*paths, *args[len(paths) :])
        self._change(*paths)
        try:
            return await self._call_target(name, *args, **kwargs)
        finally:
            self._known.clear()

    async def _put_file(self, lpath: Any, rpath: str, **kwargs: Any) -> None:
        self._change(self._strip(rpath))
        await self._call_target("put_file", lpath, self._strip(rpath), **kwargs)
        self._known.clear()

    def _change(self, *paths: Any) -> None:
        """Drops all known versions. Versions of these paths are not reused from now on."""
        self._known.clear()
        if self.max_age > 0 or self._unversioned == "size":
            self._written.update(path for path in paths if isinstance(path, str))

    async def _rm(self, path: Any, **kwargs: Any) -> Any:
        kwargs.pop("batch_size", None)
        return await self._write("rm", path, **kwargs)

    def _call_blocking(self, name: str, path: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.target, name)(self._strip(path), *args, **kwargs)

    def rmdir(self, path: str) -> None:
        """Removes an empty folder."""
        self._call_blocking("rmdir", path)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        """Creates an empty file, or updates its time of modification."""
        self._change(self._strip(path))
        self._call_blocking("touch", path, truncate=truncate, **kwargs)

    def created(self, path: str) -> Any:
        """Returns the time when a file was created."""
        return self._call_blocking("created", path)

    def modified(self, path: str) -> Any:
        """Returns the time when a file was modified."""
        return self._call_blocking("modified", path)

    def ukey(self, path: str) -> Any:
        """Returns a value that changes when the file changes."""
        return self._call_blocking("ukey", path)

    def checksum(self, path: str) -> Any:
        """Returns a number that changes when the file changes."""
        return self._call_blocking("checksum", path)

    def sign(self, path: str, expiration: int = 100, **kwargs: Any) -> Any:
        """Returns a signed URL of a file.

        Args:
            path: Path of the file.
            expiration: Seconds until the URL expires.
            **kwargs: Arguments of the target.
        """
        return self._call_blocking("sign", path, expiration, **kwargs)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Drops cached listings, and versions that would be reused.

        Args:
            path: Path whose listings are dropped; by default all. All versions are dropped in any
                case.
        """
        self._known.clear()
        self.target.invalidate_cache(None if path is None else self._strip(path))

    # Reads.

    async def _object(self, path: str, *, to_keep: bool = False) -> CachedObject | None:
        """Opens an object in its current version; returns ``None`` if it is read past the cache.

        Args:
            path: Path of the object.
            to_keep: Whether an object without a validator can be cached while it is open.
        """
        self._settle()
        path = self._strip(path)
        version, requested_at = self._known.get(path, (None, 0.0))
        if version is None or time.monotonic() - requested_at >= self.max_age:
            requested_at = time.monotonic()
            version = await self._recorded.version(path)
            if version is None or self._chunks is None:
                return None
            if self.max_age > 0 and path not in self._written and not version.is_stale:
                self._known[path] = (version, requested_at)
        validator = version.validator
        if validator is None and self._unversioned == "size" and path not in self._written:
            validator = "unversioned"
        if validator is None:
            if not to_keep:
                return None
            validator = f"unversioned {uuid.uuid4()}"
        try:
            blocks = await self._origin.in_thread(self._blocks, path, validator, version.size)
        except ArgumentError:
            # The path is too long for a key.
            return None
        if validator == version.validator:
            await self._origin.in_thread(self._recorded.record, path, version, blocks.key)
        return CachedObject(self._origin, path, version, self.chunks, blocks, **self._merging)

    def _blocks(self, path: str, validator: str, size: int) -> Any:
        address = address_of(self.target, path)
        block_len = min(self.block_size, self.chunks.max_chunk_len)
        return self.chunks.blocks(address, validator, size, block_len)

    async def _whole(self, path: str, read: Callable[[CachedObject], Awaitable[Any]]) -> Any:
        """Reads from an object, again if it changed; returns ``None`` if it is not cached."""
        for attempt in range(_TRIES):
            found = await self._object(path)
            try:
                return None if found is None else await read(found)
            except ChangedError:
                self._known.pop(found.path if found else "", None)
                if attempt + 1 == _TRIES:
                    raise
        return None

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        async def read(found: CachedObject) -> bytes:
            return await found.read_async(*within(found.size, start, end))

        data = None if kwargs else await self._whole(path, read)
        if data is None:
            data = await self._call_target(
                "cat_file", self._strip(path), start=start, end=end, **kwargs
            )
        return bytes(data)

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        if not isinstance(paths, list):
            raise TypeError("paths: expected a list")
        starts, ends = (
            limits if isinstance(limits, list | tuple) else [limits] * len(paths)
            for limits in (starts, ends)
        )
        if len(starts) != len(paths) or len(ends) != len(paths):
            raise ValueError("expected as many starts and ends as paths")
        places: dict[str, list[int]] = {}
        for place, path in enumerate(paths):
            places.setdefault(path, []).append(place)
        out: list[Any] = [None] * len(paths)

        async def one(path: str, own: list[int]) -> None:
            async def read(found: CachedObject) -> list[bytes]:
                ranges = [within(found.size, starts[place], ends[place]) for place in own]
                return await found.read_ranges(ranges)

            try:
                data: list[Any] | None = None if kwargs else await self._whole(path, read)
                if data is None:
                    limits = [(starts[place], ends[place]) for place in own]
                    data = [await self._cat_file(path, *limit, **kwargs) for limit in limits]
            except Exception as error:
                if on_error != "return":
                    raise
                data = [error] * len(own)
            for place, each in zip(own, data, strict=True):
                out[place] = each

        await together([one(path, own) for path, own in places.items()])
        return out

    async def _get_file(
        self, rpath: str, lpath: Any, callback: Any = DEFAULT_CALLBACK, **kwargs: Any
    ) -> None:
        if not isfilelike(lpath) and await self._call_target("isdir", self._strip(rpath)):
            os.makedirs(lpath, exist_ok=True)
            return
        found = None if kwargs else await self._object(rpath)
        if found is None:
            await self._call_target(
                "get_file", self._strip(rpath), lpath, callback=callback, **kwargs
            )
            return
        if isfilelike(lpath):
            await self._copy_to(found, lpath, callback)
            return
        with await self._origin.in_thread(_create, lpath) as file:
            await self._copy_to(found, file, callback)

    async def _copy_to(self, found: CachedObject, file: Any, callback: Any) -> None:
        callback.set_size(found.size)
        for start in range(0, found.size, _WINDOW):
            data = await found.read_async(start, min(start + _WINDOW, found.size))
            await self._origin.in_thread(file.write, data)
            callback.relative_update(len(data))

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        cache_type: str | None = None,
        size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        if mode == "rb" and not kwargs:
            found = sync(self.loop, self._object, path, to_keep=True)
            if found is not None:
                return CachedFile(self, found)
        if mode != "rb":
            self._change(self._strip(path))
            kwargs["autocommit"] = autocommit
        return self.target.open(self._strip(path), mode, block_size=block_size, **kwargs)

    async def open_async(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        """Opens a file for tasks.

        Args:
            path: Path of the file.
            mode: ``rb`` for reading through the cache. Other modes open the file of the target.
            **kwargs: Arguments of the target; with any, the file of the target is opened.

        Raises:
            NotImplementedError: The file is not cached, and the target has no files for tasks.
        """
        found = await self._object(path, to_keep=True) if mode == "rb" and not kwargs else None
        if found is not None:
            return AsyncCachedFile(self, found)
        if not self.target.async_impl:
            raise NotImplementedError(f"{self.target.protocol}: opens no files for tasks")
        return await self.target.open_async(self._strip(path), mode, **kwargs)


def within(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Converts the bounds of a slice, which can be negative or ``None``, into a range."""
    start, end, _ = slice(start, end).indices(size)
    return start, max(start, end)


def _create(path: str) -> Any:
    """Creates a file and its folder."""
    Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
    return open(path, "wb")


def _reading_method(name: str) -> Callable[..., Awaitable[Any]]:
    async def call(self: NuthatchCache, path: str, *args: Any, **kwargs: Any) -> Any:
        return await self._call_target(name, self._strip(path), *args, **kwargs)

    return call


def _changing_method(name: str) -> Callable[..., Awaitable[Any]]:
    async def write(self: NuthatchCache, *args: Any, **kwargs: Any) -> Any:
        return await self._write(name, *args, **kwargs)

    return write


for _name in _READING_METHODS:
    setattr(NuthatchCache, f"_{_name}", _reading_method(_name))
for _name in _CHANGING_METHODS:
    if f"_{_name}" not in vars(NuthatchCache):
        setattr(NuthatchCache, f"_{_name}", _changing_method(_name))
