"""The filesystem: lists and writes as its target does, and reads through the cache."""

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

# What is answered by the target alone, as a call or as one to be awaited.
_ASKED = ("ls", "find", "exists", "isfile", "isdir", "du")
# The same for what changes the target, by how many paths come first.
_WRITTEN = {
    "mkdir": 1,
    "makedirs": 1,
    "pipe_file": 1,
    "rm": 1,
    "rm_file": 1,
    "cp_file": 2,
    "mv": 2,
}
# How much of a long object is in memory while it is copied.
_WINDOW = 32 << 20
# How often whole reads begin again because the object changed meanwhile.
_TRIES = 3


class NuthatchCache(AsyncFileSystem, ChainedFileSystem):
    """A filesystem whose reads go through a chunk cache that all processes share.

    Listing, information and writing are those of the target. An object is opened in the version
    that the target then has of it, and every byte that is read is of that version; when the object
    changes meanwhile, that is a ``nuthatch.ChangedError``, and opening it again reads the new one.
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
        """Wrap a filesystem, by its protocol or a URL of one, or as it is.

        ``target``, or ``fs``, or ``target_protocol``: the filesystem; local files by default.
        ``target_options``: what it is made with, such as credentials.
        ``cache``: the folder; that of this user's cache by default.
        ``limit``: how many bytes the folder may have, for all processes from then on. If it has
        more, the excess is evicted at once.
        ``block_size``: how many bytes a block has, which is the least that is fetched.
        ``max_age``: for how many seconds a version is believed before the target is asked again; by
        default it is asked at each open.
        ``read_ahead``: how many bytes ahead of a sequential reader are fetched, at most.
        ``merge``: how many bytes that are there already may lie between gaps that are fetched
        together.
        ``request_size``: how many bytes one request asks for, at most.
        ``unversioned``: what has no validator is kept for as long as it is open (``open``), or for
        as long as its length stays (``size``), which misses changes that keep it.
        ``offline``: the target is never asked; reads are of the versions that were recorded, and
        what the cache does not have is a ``nuthatch.UnavailableError``.
        ``max_stale``: the maximum age in seconds of a version that is read while the target is
        unavailable, counted from when the target last confirmed it. The target is unavailable if it
        cannot be reached, has not sent a version within a second, or, over HTTP, answers 429, 500,
        502, 503 or 504. By default the age is that of ``Cache-Control: stale-if-error``, if the
        target sends that; otherwise there is an error after retries. With ``offline``, older
        versions are refused.

        A folder that cannot be opened is done without, with a ``RuntimeWarning``.
        """
        super().__init__(**options)
        given = [each for each in (target, target_protocol, fs) if each is not None]
        if len(given) > 1:
            raise ValueError("expected one of target, target_protocol and fs, found several")
        made = self._make_target(given[0] if given else "file", target_options or {})
        self._origin = Origin(made, offline=offline)
        # Others call them on the class, which knows no target.
        own: dict[str, Any] = self.__dict__
        own.update(_strip_protocol=self._strip, _parent=made._parent)
        self.root_marker = made.root_marker
        self._chunks = open_if_possible(cache, limit=limit)
        self._recorded = Recorded(self._origin, self._chunks, max_stale)
        self.block_size = block_size
        self.max_age = max_age
        self.read_ahead = 0 if offline else read_ahead
        self._merging = {"max_gap": merge, "request_most": request_size}
        self._unversioned = unversioned
        # Versions by path, and when they were asked for; and paths of which none is believed, since
        # they were opened here for writing.
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

    # The target, and the loop, in this process.

    @property
    def target(self) -> Any:
        """The filesystem behind the cache."""
        self._settle()
        return self._origin.target

    @property
    def loop(self) -> Any:
        """The event loop that does the work."""
        self._settle()
        return self._loop

    def _settle(self) -> None:
        """Begin anew in a child made by ``fork``: its parent's loop and connections are gone."""
        if self._pid == os.getpid() or self.asynchronous:
            return
        target = self._origin.target
        if target.async_impl:
            # Objects that are open have the same origin.
            self._origin.target = type(target)(*target.storage_args, **target.storage_options)
        self._loop = get_loop()
        self._pid = os.getpid()

    @property
    def chunks(self) -> Chunks:
        """The folder; an error if it cannot be opened, so that reads pass through."""
        if self._chunks is None:
            raise Error("the folder of the cache cannot be opened; reads pass through", "folder")
        return self._chunks

    @property
    def counts(self) -> Counts:
        """What was fetched for this filesystem in this process."""
        return replace(self._origin.counts)

    def start(self, work: Coroutine[Any, Any, object]) -> Future[object]:
        """Have the loop do something while the caller goes on."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    # Paths are those of the target.

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
        """Make a URL of a path, which tells the target as well."""
        return f"nuthatch://{self.target.unstrip_protocol(self._strip(name))}"

    @property
    def sep(self) -> str:
        """What is between the parts of paths."""
        return str(self.target.sep)

    @property
    def fsid(self) -> str:
        """What tells this filesystem from others."""
        return f"nuthatch_{self.target.fsid}"

    # What the target does.

    async def _ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
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
        found = await self._ask("glob", self._strip(path), **kwargs)

        # Names that are URLs lead back here, not past the cache.
        def named(name: str) -> str:
            return f"nuthatch://{name}" if "://" in name else name

        if isinstance(found, dict):
            return {named(name): info for name, info in found.items()}
        return [named(name) for name in found]

    async def _write(self, name: str, *args: Any, **kwargs: Any) -> Any:
        paths = [self._strip(path) for path in args[: _WRITTEN[name]]]
        args = (*paths, *args[len(paths) :])
        self._change(*paths)
        try:
            return await self._ask(name, *args, **kwargs)
        finally:
            self._known.clear()

    async def _put_file(self, lpath: Any, rpath: str, **kwargs: Any) -> None:
        self._change(self._strip(rpath))
        await self._ask("put_file", lpath, self._strip(rpath), **kwargs)
        self._known.clear()

    def _change(self, *paths: Any) -> None:
        """Believe nothing that is known, and of these paths nothing from now on."""
        self._known.clear()
        if self.max_age > 0 or self._unversioned == "size":
            self._written.update(path for path in paths if isinstance(path, str))

    async def _rm(self, path: Any, **kwargs: Any) -> Any:
        kwargs.pop("batch_size", None)
        return await self._write("rm", path, **kwargs)

    def _here(self, name: str, path: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.target, name)(self._strip(path), *args, **kwargs)

    def rmdir(self, path: str) -> None:
        """Remove a folder that is empty."""
        self._here("rmdir", path)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        """Make an empty file, or set its time."""
        self._change(self._strip(path))
        self._here("touch", path, truncate=truncate, **kwargs)

    def created(self, path: str) -> Any:
        """Tell when a file was made."""
        return self._here("created", path)

    def modified(self, path: str) -> Any:
        """Tell when a file was written."""
        return self._here("modified", path)

    def ukey(self, path: str) -> Any:
        """Tell what differs when the file does."""
        return self._here("ukey", path)

    def checksum(self, path: str) -> Any:
        """Tell what differs when the file does, as a number."""
        return self._here("checksum", path)

    def sign(self, path: str, expiration: int = 100, **kwargs: Any) -> Any:
        """Make a URL for others."""
        return self._here("sign", path, expiration, **kwargs)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Forget listings, and versions that are believed."""
        self._known.clear()
        self.target.invalidate_cache(None if path is None else self._strip(path))

    # Reading.

    async def _object(self, path: str, *, to_keep: bool = False) -> CachedObject | None:
        """Open an object in the version that it has; ``None`` for what is not to be cached."""
        self._settle()
        path = self._strip(path)
        version, asked = self._known.get(path, (None, 0.0))
        if version is None or time.monotonic() - asked >= self.max_age:
            asked = time.monotonic()
            version = await self._recorded.version(path)
            if version is None or self._chunks is None:
                return None
            if self.max_age > 0 and path not in self._written and not version.is_stale:
                self._known[path] = (version, asked)
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
        """Read something of an object, again if it changed meanwhile; ``None`` if not cached."""
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
            data = await self._ask("cat_file", self._strip(path), start=start, end=end, **kwargs)
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
        if not isfilelike(lpath) and await self._ask("isdir", self._strip(rpath)):
            os.makedirs(lpath, exist_ok=True)
            return
        found = None if kwargs else await self._object(rpath)
        if found is None:
            await self._ask("get_file", self._strip(rpath), lpath, callback=callback, **kwargs)
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
        """Open a file for tasks."""
        found = await self._object(path, to_keep=True) if mode == "rb" and not kwargs else None
        if found is not None:
            return AsyncCachedFile(self, found)
        if not self.target.async_impl:
            raise NotImplementedError(f"{self.target.protocol}: opens no files for tasks")
        return await self.target.open_async(self._strip(path), mode, **kwargs)


def within(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Make a range of what slices may have: nothing, or numbers from the end."""
    start, end, _ = slice(start, end).indices(size)
    return start, max(start, end)


def _create(path: str) -> Any:
    """Make a file, and its folder."""
    Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
    return open(path, "wb")


def _asking(name: str) -> Callable[..., Awaitable[Any]]:
    async def ask(self: NuthatchCache, path: str, *args: Any, **kwargs: Any) -> Any:
        return await self._ask(name, self._strip(path), *args, **kwargs)

    return ask


def _writing(name: str) -> Callable[..., Awaitable[Any]]:
    async def write(self: NuthatchCache, *args: Any, **kwargs: Any) -> Any:
        return await self._write(name, *args, **kwargs)

    return write


for _name in _ASKED:
    setattr(NuthatchCache, f"_{_name}", _asking(_name))
for _name in _WRITTEN:
    if f"_{_name}" not in vars(NuthatchCache):
        setattr(NuthatchCache, f"_{_name}", _writing(_name))
