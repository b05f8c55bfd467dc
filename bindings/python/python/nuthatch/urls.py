"""Files at URLs, read through the chunk cache without any filesystem."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from nuthatch._native import Chunks, UrlCounts, UrlObject
from nuthatch.folders import open_if_possible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import WriteableBuffer

__all__ = ["UrlFile", "open_url"]


class UrlFile(io.RawIOBase):
    """A file at a URL, to read. What is behind the reader that ``open_url`` answers."""

    def __init__(self, opened: UrlObject) -> None:
        """Stand at the beginning."""
        super().__init__()
        self._opened = opened

    @property
    def address(self) -> str:
        """Where it is, without user, password and signatures."""
        return self._opened.address

    @property
    def validator(self) -> str | None:
        """What tells this version from others; without one, nothing is kept."""
        return self._opened.validator

    @property
    def content_type(self) -> str | None:
        """What kind of data the origin says it is."""
        return self._opened.content_type

    @property
    def stale_age(self) -> float | None:
        """How many seconds ago the origin confirmed the version; ``None`` if it did so just now."""
        return self._opened.stale_age

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self._opened)

    @property
    def counts(self) -> UrlCounts:
        """What was read of it in this process, and where it came from."""
        return self._opened.counts

    def read_at(self, offset: int, length: int) -> bytes:
        """Read up to ``length`` bytes from an offset on, wherever the file stands."""
        self._check_open()
        _check_offset(offset)
        return self._opened.read_at(offset, length)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read some bytes. Answers how many; none at the end."""
        self._check_open()
        return self._opened.readinto(memoryview(buffer).cast("B"))

    def readall(self) -> bytes:
        """Read all to the end."""
        self._check_open()
        found = self._opened.read_at(self.tell(), self.size)
        self.seek(0, io.SEEK_END)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go elsewhere. Answers where."""
        self._check_open()
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._opened.tell(), io.SEEK_END: self.size}
        if whence not in bases:
            raise ValueError(f"whence: expected 0, 1 or 2, found {whence}")
        _check_offset(bases[whence] + offset)
        return self._opened.seek(bases[whence] + offset)

    def tell(self) -> int:
        """Tell where it stands."""
        return self._opened.tell()

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can go elsewhere."""
        return True

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def _check_offset(offset: int) -> None:
    if offset < 0:
        raise ValueError(f"expected an offset within the file, found {offset}")


def open_url(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    cache: str | os.PathLike[str] | Chunks | None = None,
    limit: int | None = None,
    offline: bool = False,
    max_stale: float | None = None,
    buffer_size: int = 128 << 10,
) -> io.BufferedReader:
    """Open the file at a URL for reading, through the chunk cache.

    ``url`` is ``http://`` or ``https://``, ``s3://bucket/key``, ``gs://bucket/key``,
    ``az://container/path``, ``file://`` or a path. Credentials come from the environment, as those
    services have them. ``headers`` are shown to an ``http://`` or ``https://`` origin with each
    request, and to no other host that it redirects to: a token is
    ``headers={"Authorization": f"Bearer {token}"}``. Without a user in the URL or that header,
    ``.netrc`` is looked into. ``cache`` is the folder, this user's by default, and ``limit`` how
    many bytes it may have, for all processes from then on: if it has more, the excess is evicted at
    once. All bytes are of the version that the file has when it is opened; ``raw`` of what is
    answered is a ``UrlFile``. The file, and with it what it shows, is there for this process and
    for children made by ``fork``, and cannot be pickled.

    While the origin is away (it cannot be reached, or answers 429, 500, 502, 503 or 504), the
    version that it last confirmed is read if that is at most ``max_stale`` seconds ago; by default,
    as long as the origin allows by ``Cache-Control: stale-if-error``. With ``offline`` it is never
    asked. What the cache does not have is a ``nuthatch.UnavailableError`` then.
    ``UrlFile.stale_age`` tells whether that happened. A folder that cannot be opened is done
    without, with a ``RuntimeWarning``.
    """
    folder = open_if_possible(cache, limit=limit)
    opened = UrlObject(folder, url, headers=headers, offline=offline, max_stale=max_stale)
    return io.BufferedReader(UrlFile(opened), buffer_size)
