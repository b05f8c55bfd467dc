"""The filesystem behind the cache: requests for versions of objects and for their bytes."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from nuthatch.errors import ChangedError, UnavailableError
from nuthatch.fs import http
from nuthatch.fs.addresses import address_of
from nuthatch.fs.versions import Version, is_http, version_of

T = TypeVar("T")
Range = tuple[int, int]

# Maximum number of threads for disk I/O and for filesystems without asyncio.
_THREADS = 16
# Maximum number of ranges that one read fetches at the same time.
AT_ONCE = 8


@dataclass
class Counts:
    """Counters of fetches of one filesystem in this process."""

    requests: int = 0
    """Requests for bytes, including retries."""
    fetched_bytes: int = 0
    """Bytes that these requests received."""


class Origin:
    """The filesystem that has the objects."""

    def __init__(self, target: Any, *, offline: bool = False) -> None:
        """Wraps a filesystem.

        Args:
            target: The filesystem.
            offline: Whether calls to the filesystem raise an error.
        """
        self.target = target
        self.offline = offline
        self.counts = Counts()
        self._threads: tuple[int, ThreadPoolExecutor] | None = None

    async def in_thread(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Runs a blocking function on a thread and returns its result."""
        # The executor is not shared: a blocking function may belong to another cache, which needs
        # threads to finish. It belongs to this process: a child made by `fork` has none of its
        # parent's threads.
        if self._threads is None or self._threads[0] != os.getpid():
            self._threads = (os.getpid(), ThreadPoolExecutor(_THREADS, "nuthatch-fs"))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads[1], partial(function, *args, **kwargs))

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a method of the filesystem, which may be asynchronous or blocking."""
        self._check_online(args[0] if args else "")
        if self.target.async_impl:
            method = getattr(self.target, f"_{name}", None)
            if method is not None:
                return await method(*args, **kwargs)
        return await self.in_thread(getattr(self.target, name), *args, **kwargs)

    async def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """Returns the information of the filesystem about an object."""
        self._check_online(path)
        if is_http(self.target) and not kwargs:
            return await http.info(self.target, path)
        found: dict[str, Any] = await self.call("info", path, **kwargs)
        return found

    def _check_online(self, path: object) -> None:
        if self.offline:
            message = "offline: not in the cache; without offline= it is fetched from the target"
            raise UnavailableError(f"{address_of(self.target, str(path))}: {message}", "offline")

    async def version(self, path: str) -> Version | None:
        """Requests the current version of an object; returns ``None`` if it cannot be cached."""
        return await self.repeat(path, self.version_request(path))

    def version_request(self, path: str) -> Callable[[], Awaitable[Version | None]]:
        """Returns a function that requests the current version of an object once."""
        self._check_online(path)
        if is_http(self.target):
            return http.VersionRequest(self.target, path).attempt
        return partial(self._version_of_info, path)

    async def repeat(self, path: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Runs an attempt. Over HTTP, repeats it after transient failures.

        Other filesystems repeat requests themselves.
        """
        return await (http.repeat(path, attempt) if is_http(self.target) else attempt())

    async def _version_of_info(self, path: str) -> Version | None:
        info = await self.info(path, **self._anew(path))
        return await self.in_thread(version_of, self.target, path, info)

    def _anew(self, path: str) -> dict[str, bool]:
        """Makes the filesystem request new information instead of using a cached listing."""
        info = getattr(self.target, "_info", None) or self.target.info
        if "refresh" in inspect.signature(info).parameters:
            return {"refresh": True}
        listings = getattr(self.target, "dircache", None)
        if listings:
            self.target.invalidate_cache(path)
        return {}

    @property
    def checked_at_once(self) -> int:
        """Returns the number of ranges that are fetched before their version is checked."""
        return 1 if is_http(self.target) else AT_ONCE

    async def fetch(self, path: str, version: Version, ranges: list[Range]) -> list[bytes]:
        """Fetches ranges of one version of an object.

        Args:
            path: Path of the object.
            version: The expected version.
            ranges: Pairs of a start and an end in bytes.

        Returns:
            The bytes of each range.

        Raises:
            ChangedError: The object has another version.
            UnavailableError: ``offline`` is set.
        """
        self._check_online(path)
        one = self._fetch_http if is_http(self.target) else self._fetch_any
        found = await together([one(path, version, start, end) for start, end in ranges])
        if not is_http(self.target):
            # The object has this version after the fetch and had it before, so the bytes are of
            # this version.
            await self._check(path, version)
        for (start, end), data in zip(ranges, found, strict=True):
            if len(data) != end - start:
                expected = f"expected {end - start} bytes from {start}, found {len(data)}"
                raise OSError(f"{path}: {expected}")
        return found

    async def _fetch_http(self, path: str, version: Version, start: int, end: int) -> bytes:
        return await http.fetch(self.target, path, version, start, end, self.count)

    async def _fetch_any(self, path: str, _version: Version, start: int, end: int) -> bytes:
        try:
            found = await self.call("cat_file", path, start=start, end=end)
        except FileNotFoundError:
            raise
        except Exception:
            # Filesystems report a range beyond the end in different ways.
            await self._check(path, _version)
            raise
        self.count(1, len(found))
        return bytes(found)

    async def _check(self, path: str, version: Version) -> None:
        now = await self.version(path)
        if now != version:
            is_ = now.described() if now else "no file"
            raise ChangedError(
                f"{path}: changed while it was read: was {version.described()}, is {is_}", "changed"
            )

    def count(self, requests: int, fetched: int) -> None:
        """Adds requests and their bytes to the counters."""
        self.counts.requests += requests
        self.counts.fetched_bytes += fetched


async def together(work: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs all coroutines. If one fails, the others are cancelled and finish before it raises."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
