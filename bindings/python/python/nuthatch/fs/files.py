"""Files over objects in the cache."""

from __future__ import annotations

import io
import os
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from fsspec.asyn import AbstractAsyncStreamedFile
from fsspec.spec import AbstractBufferedFile

from nuthatch.errors import ChangedError
from nuthatch.fs.addresses import address_of
from nuthatch.fs.objects import CachedObject

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from nuthatch.fs.filesystem import NuthatchCache

# Reads in order that are shorter than this, or than a block, are served from such a window.
_WINDOW = 128 << 10


class ReadAhead:
    """Has what a sequential reader will want fetched before it asks.

    How far ahead grows with each range that is read, and stops when the reader goes elsewhere.
    """

    def __init__(self, fs: NuthatchCache, of: CachedObject, most: int) -> None:
        """Nothing is read ahead before somebody reads in order."""
        self._fs = fs
        self._of = of
        self._most = most
        self._runs = 0
        self._next = 0
        self._len = 0
        self._until = 0
        self._under_way: tuple[int, Future[object]] | None = None

    def went(self, start: int, end: int) -> None:
        """Take note of a range that is about to be read."""
        if start != self._next:
            self.stop()
        self._next = end
        self._runs += 1
        if self._runs < 2 or self._most == 0:
            return
        ahead = self._until - end
        if ahead > self._len // 2 or (self._under_way and not self._under_way[1].done()):
            return
        self._len = min(
            max(2 * self._len, 2 * (end - start), self._of.blocks.block_len), self._most
        )
        begin, until = max(end, self._until), min(end + self._len, self._of.size)
        if begin >= until:
            return
        self._until = until
        missing = self._of.blocks.missing(begin, until)
        if missing:
            self._under_way = (os.getpid(), self._fs.start(self._of.fetch(missing)))

    def stop(self) -> None:
        """Go elsewhere, or away."""
        self._runs = self._len = self._until = 0
        under_way, self._under_way = self._under_way, None
        # What a parent of this process began is not ours to end.
        if under_way and under_way[0] == os.getpid():
            under_way[1].cancel()


class CachedFile(AbstractBufferedFile):
    """A file to read, of one version of an object, with the interface of fsspec's files.

    Reads of a position are for one thread at a time; ``read_at`` is for any number of them.
    """

    def __init__(self, fs: NuthatchCache, of: CachedObject, **kwargs: Any) -> None:
        """Stand at the beginning."""
        super().__init__(
            fs,
            of.path,
            mode="rb",
            block_size=of.blocks.block_len,
            cache_type="none",
            size=of.size,
            **kwargs,
        )
        self.object = of
        self._ahead = ReadAhead(fs, of, fs.read_ahead)
        self._window_len = min(_WINDOW, of.blocks.block_len)
        self._window = b""
        self._window_start = 0

    def read_at(self, offset: int, length: int) -> bytes:
        """Read up to ``length`` bytes from an offset on, wherever the file stands."""
        self._check_open()
        if offset < 0:
            raise ValueError(f"expected an offset within the file, found {offset}")
        start = min(offset, self.size)
        return self.object.read(start, min(start + max(length, 0), self.size), self.fs.loop)

    def read(self, length: int | None = -1) -> bytes:
        """Read up to ``length`` bytes; without it, all to the end."""
        self._check_open()
        rest = max(self.size - self.loc, 0)
        wanted = rest if length is None or length < 0 else min(int(length), rest)
        if wanted == 0:
            return b""
        if wanted < self._window_len:
            found = self._from_window(wanted)
        else:
            self._ahead.went(self.loc, self.loc + wanted)
            found = self.object.read(self.loc, self.loc + wanted, self.fs.loop)
        self.loc += len(found)
        return found

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer, without a copy in between if it is a long one. Answers how far."""
        self._check_open()
        out = memoryview(buffer).cast("B")
        wanted: int = min(len(out), max(self.size - self.loc, 0))
        if wanted < self._window_len:
            out[:wanted] = self.read(wanted)
            return wanted
        self._ahead.went(self.loc, self.loc + wanted)
        self.loc += self.object.read_into(self.loc, out[:wanted], self.fs.loop)
        return wanted

    def read1(self, length: int = -1) -> bytes:
        """Read some bytes, at most ``length``."""
        return self.read(self._window_len if length < 0 else length)

    def peek(self, length: int = 0, /) -> bytes:
        """Look at some of the next bytes, and stay."""
        self._check_open()
        if self.loc >= self.size:
            return b""
        self._from_window(1)
        return self._window[self.loc - self._window_start :]

    def _from_window(self, wanted: int) -> bytes:
        at = self.loc - self._window_start
        if not 0 <= at <= len(self._window) - wanted:
            end = self.loc + wanted
            if 0 <= at <= len(self._window):
                # Who goes on where he was will do so again. Windows end where blocks do.
                end = min(-(-end // self._window_len) * self._window_len, self.size)
            self._ahead.went(self.loc, end)
            self._window = self.object.read(self.loc, end, self.fs.loop)
            self._window_start = self.loc
            at = 0
        return self._window[at : at + wanted]

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    # Those of fsspec read a whole block for each line.
    readline = io.IOBase.readline
    readlines = io.IOBase.readlines
    __next__ = io.IOBase.__next__
    __iter__ = io.IOBase.__iter__

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.read_at(start, end - start)

    def close(self) -> None:
        """End what is read ahead."""
        if not self.closed:
            self._ahead.stop()
            self._window = b""
        super().close()

    def __repr__(self) -> str:
        return f"<nuthatch.fs.CachedFile at {self.object.address}>"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (self.fs, self.path, self.loc, self.object.version)


def _open_again(fs: NuthatchCache, path: str, loc: int, version: object) -> CachedFile:
    """Open what was pickled: the same version, or none."""
    file = fs.open(path, "rb")
    if not isinstance(file, CachedFile) or file.object.version != version:
        file.close()
        address = address_of(fs.target, path)
        raise ChangedError(f"{address}: changed since the file was pickled", "changed")
    file.seek(loc)
    return file


class AsyncCachedFile(AbstractAsyncStreamedFile):
    """A file to read for tasks: ``await file.read(length)``."""

    def __init__(self, fs: NuthatchCache, of: CachedObject) -> None:
        """Stand at the beginning."""
        block_len = of.blocks.block_len
        super().__init__(
            fs, of.path, mode="rb", block_size=block_len, cache_type="none", size=of.size
        )
        self.object = of

    async def _fetch_range(self, start: int, end: int) -> bytes:
        return await self.object.read_async(start, min(end, self.size))
