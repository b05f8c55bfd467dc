"""Files of fsspec over objects in the cache."""

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

# Length in bytes of the read buffer. Reads that are shorter than it, or than a block, use it.
_WINDOW = 128 << 10


class ReadAhead:
    """Fetches the bytes after those of a sequential reader in advance.

    Their number grows with each range that is read. A seek stops the read-ahead.
    """

    def __init__(self, fs: NuthatchCache, of: CachedObject, max_len: int) -> None:
        """Prepares the read-ahead, which begins with the second sequential read."""
        self._fs = fs
        self._of = of
        self._max_len = max_len
        self._runs = 0
        self._next = 0
        self._len = 0
        self._until = 0
        self._in_progress: tuple[int, Future[object]] | None = None

    def record(self, start: int, end: int) -> None:
        """Records the range of the next read. Starts a fetch if the reads are sequential."""
        if start != self._next:
            self.stop()
        self._next = end
        self._runs += 1
        if self._runs < 2 or self._max_len == 0:
            return
        ahead = self._until - end
        if ahead > self._len // 2 or (self._in_progress and not self._in_progress[1].done()):
            return
        self._len = min(
            max(2 * self._len, 2 * (end - start), self._of.blocks.block_len), self._max_len
        )
        begin, until = max(end, self._until), min(end + self._len, self._of.size)
        if begin >= until:
            return
        self._until = until
        missing = self._of.blocks.missing(begin, until)
        if missing:
            self._in_progress = (os.getpid(), self._fs.start(self._of.fetch(missing)))

    def stop(self) -> None:
        """Cancels the fetch in progress, after a seek or at the end."""
        self._runs = self._len = self._until = 0
        in_progress, self._in_progress = self._in_progress, None
        # A fetch that the parent process started must not be cancelled here.
        if in_progress and in_progress[0] == os.getpid():
            in_progress[1].cancel()


class CachedFile(AbstractBufferedFile):
    """A file for reading one version of an object, with the interface of fsspec's files.

    One thread at a time can read from the current position. Any number can call ``read_at``.
    """

    def __init__(self, fs: NuthatchCache, of: CachedObject, **kwargs: Any) -> None:
        """Creates the file at position 0."""
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
        """Reads bytes from an offset on. Does not change the current position.

        Args:
            offset: First byte to read.
            length: Maximum number of bytes.

        Returns:
            The bytes; fewer than ``length`` only at the end of the file.

        Raises:
            ValueError: The file is closed, or ``offset`` is negative.
        """
        self._check_open()
        if offset < 0:
            raise ValueError(f"expected an offset within the file, found {offset}")
        start = min(offset, self.size)
        return self.object.read(start, min(start + max(length, 0), self.size), self.fs.loop)

    def read(self, length: int | None = -1) -> bytes:
        """Reads bytes from the current position.

        Args:
            length: Maximum number of bytes; by default all to the end.

        Returns:
            The bytes; fewer than ``length`` only at the end of the file.
        """
        self._check_open()
        rest = max(self.size - self.loc, 0)
        wanted = rest if length is None or length < 0 else min(int(length), rest)
        if wanted == 0:
            return b""
        if wanted < self._window_len:
            found = self._from_window(wanted)
        else:
            self._ahead.record(self.loc, self.loc + wanted)
            found = self.object.read(self.loc, self.loc + wanted, self.fs.loop)
        self.loc += len(found)
        return found

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Reads bytes from the current position into a buffer.

        Long reads make no copy in between.

        Returns:
            The number of bytes; fewer than the buffer has only at the end of the file.
        """
        self._check_open()
        out = memoryview(buffer).cast("B")
        wanted: int = min(len(out), max(self.size - self.loc, 0))
        if wanted < self._window_len:
            out[:wanted] = self.read(wanted)
            return wanted
        self._ahead.record(self.loc, self.loc + wanted)
        self.loc += self.object.read_into(self.loc, out[:wanted], self.fs.loop)
        return wanted

    def read1(self, length: int = -1) -> bytes:
        """Reads at most ``length`` bytes.

        Args:
            length: Maximum number of bytes; by default as many as the read buffer has.

        Returns:
            The bytes; none at the end of the file.
        """
        return self.read(self._window_len if length < 0 else length)

    def peek(self, length: int = 0, /) -> bytes:
        """Returns some of the next bytes. Does not change the current position.

        Args:
            length: Ignored, as in ``io.BufferedReader``: at least one byte is returned.

        Returns:
            The bytes; none at the end of the file.
        """
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
                # The reads are sequential, so more than this read is buffered, up to the next
                # multiple of the length of the buffer.
                end = min(-(-end // self._window_len) * self._window_len, self.size)
            self._ahead.record(self.loc, end)
            self._window = self.object.read(self.loc, end, self.fs.loop)
            self._window_start = self.loc
            at = 0
        return self._window[at : at + wanted]

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    # The methods of fsspec read a whole block for each line.
    readline = io.IOBase.readline
    readlines = io.IOBase.readlines
    __next__ = io.IOBase.__next__
    __iter__ = io.IOBase.__iter__

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.read_at(start, end - start)

    def close(self) -> None:
        """Closes the file and stops the read-ahead."""
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
    """Opens a file that was pickled; fails if its version changed."""
    file = fs.open(path, "rb")
    if not isinstance(file, CachedFile) or file.object.version != version:
        file.close()
        address = address_of(fs.target, path)
        raise ChangedError(f"{address}: changed since the file was pickled", "changed")
    file.seek(loc)
    return file


class AsyncCachedFile(AbstractAsyncStreamedFile):
    """A file for reading in tasks: ``await file.read(length)``."""

    def __init__(self, fs: NuthatchCache, of: CachedObject) -> None:
        """Creates the file at position 0."""
        block_len = of.blocks.block_len
        super().__init__(
            fs, of.path, mode="rb", block_size=block_len, cache_type="none", size=of.size
        )
        self.object = of

    async def _fetch_range(self, start: int, end: int) -> bytes:
        return await self.object.read_async(start, min(end, self.size))
