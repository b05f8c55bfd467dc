"""Files at URLs, read through the chunk cache without a filesystem."""

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
    """A file at a URL, for reading: the ``raw`` stream of the reader that ``open_url`` returns.

    One thread at a time can read from the current position. Any number can call ``read_at``.
    """

    def __init__(self, opened: UrlObject) -> None:
        """Creates the file at position 0."""
        super().__init__()
        self._opened = opened

    @property
    def address(self) -> str:
        """Returns the address of the file, without user, password and signatures."""
        return self._opened.address

    @property
    def validator(self) -> str | None:
        """Returns the validator of the version. Without one, the cache keeps no bytes."""
        return self._opened.validator

    @property
    def content_type(self) -> str | None:
        """Returns the media type that the origin sent; ``None`` if it sent none."""
        return self._opened.content_type

    @property
    def stale_age(self) -> float | None:
        """Returns the age of a stale version in seconds.

        ``None`` means that the origin confirmed the version when the file was opened.
        """
        return self._opened.stale_age

    @property
    def size(self) -> int:
        """Returns the length of the file in bytes."""
        return len(self._opened)

    @property
    def counts(self) -> UrlCounts:
        """Returns the counters of reads of this file in this process."""
        return self._opened.counts

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
        _check_offset(offset)
        return self._opened.read_at(offset, length)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Reads bytes from the current position into a buffer.

        Returns:
            The number of bytes; 0 at the end of the file.
        """
        self._check_open()
        return self._opened.readinto(memoryview(buffer).cast("B"))

    def readall(self) -> bytes:
        """Reads all bytes from the current position to the end."""
        self._check_open()
        found = self._opened.read_at(self.tell(), self.size)
        self.seek(0, io.SEEK_END)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Sets the current position.

        Args:
            offset: Offset in bytes, relative to ``whence``.
            whence: ``io.SEEK_SET``, ``io.SEEK_CUR`` or ``io.SEEK_END``.

        Returns:
            The new position in bytes.

        Raises:
            ValueError: The file is closed, the position is negative, or ``whence`` is invalid.
        """
        self._check_open()
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._opened.tell(), io.SEEK_END: self.size}
        if whence not in bases:
            raise ValueError(f"whence: expected 0, 1 or 2, found {whence}")
        _check_offset(bases[whence] + offset)
        return self._opened.seek(bases[whence] + offset)

    def tell(self) -> int:
        """Returns the current position in bytes."""
        return self._opened.tell()

    def close(self) -> None:
        """Waits until the bytes that were read are in the cache, and closes the file."""
        try:
            if not self.closed:
                self._opened.wait_for_puts()
        finally:
            super().close()

    def readable(self) -> bool:
        """Returns ``True``."""
        return True

    def seekable(self) -> bool:
        """Returns ``True``."""
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
    """Opens the file at a URL for reading, through the chunk cache.

    All bytes are of the version that the file has when it is opened. Credentials for object stores
    come from the environment, as their own clients read them. ``.netrc`` is used for an HTTP origin
    if neither the URL has a user nor ``headers`` an ``Authorization``. The file can be used in this
    process and in children made by ``fork``. It cannot be pickled. Closing it waits until the bytes
    that were read are in the cache; a process that ends without closing it may fetch them again.

    An origin is unavailable if it cannot be reached or responds with 429, 500, 502, 503 or 504. The
    version that it last confirmed is read then, if it is not older than ``max_stale``.
    ``UrlFile.stale_age`` reports such a read. If the folder of the cache cannot be opened, all
    bytes come from the origin, and a ``RuntimeWarning`` is issued.

    Args:
        url: ``http://``, ``https://``, ``s3://bucket/key``, ``gs://bucket/key``,
            ``az://container/path``, ``file://`` or a path.
        headers: Headers of each request to an ``http://`` or ``https://`` origin, such as
            ``{"Authorization": f"Bearer {token}"}``. They are not sent to other hosts that the
            origin redirects to.
        cache: The folder of the cache, or an open one; by default that of this user's cache.
        limit: Maximum size of the folder in bytes, for all processes from then on. If the folder is
            larger, the excess is evicted at once.
        offline: Whether to read from the cache only, without requests to the origin.
        max_stale: Maximum age in seconds of a version that is read while the origin is unavailable;
            by default the age that the origin allows by ``Cache-Control: stale-if-error``.
        buffer_size: Size of the read buffer in bytes.

    Returns:
        A buffered reader, whose ``raw`` is a ``UrlFile``.

    Raises:
        NotFoundError: The origin has no such object.
        AccessError: The origin does not permit the request.
        UnavailableError: The origin is unavailable or ``offline`` is set, and the cache has no
            version that can be used.
    """
    folder = open_if_possible(cache, limit=limit)
    opened = UrlObject(folder, url, headers=headers, offline=offline, max_stale=max_stale)
    return io.BufferedReader(UrlFile(opened), buffer_size)
