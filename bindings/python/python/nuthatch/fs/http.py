"""Requests over HTTP: versions, and ranges that are compared with the version that was opened.

fsspec's own calls answer bytes alone. Here the answer's tag, its range and its length are compared
with those of the version that was opened, so no other request is needed to tell them apart.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from nuthatch._native import _is_transient, _is_unavailable
from nuthatch.errors import ChangedError
from nuthatch.fs.addresses import plain_address
from nuthatch.fs.versions import Version, http_stamp, http_version

T = TypeVar("T")

# How often a request is repeated that failed in passing, and the first pause, in seconds.
_RETRIES = 4
_PAUSE = 0.1


class _PassingError(OSError):
    """Something that may be over soon."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        """Tell what happened, and which status the origin answered."""
        super().__init__(reason)
        self.status = status


class AwayError(OSError):
    """An origin cannot be reached, or has no answer now."""


async def info(target: Any, url: str) -> dict[str, Any]:
    """Ask what an object is. fsspec's own call says of all that goes wrong that there is none."""
    import aiohttp

    async def once() -> dict[str, Any]:
        try:
            found: dict[str, Any] = await target._info(url)
        except FileNotFoundError as error:
            cause = error.__cause__
        else:
            return found
        # Not within the handler, whose error has the URL with all that is in it.
        if isinstance(cause, aiohttp.ClientResponseError):
            _check_status(plain_address(url), cause.status)
        raise cause or FileNotFoundError(plain_address(url))

    return await repeat(url, once)


class VersionRequest:
    """Requests the version of an object. Only the head of the answer is read."""

    def __init__(self, target: Any, url: str) -> None:
        """Make no request yet."""
        self._target = target
        self._url = url
        self._is_first = True

    async def attempt(self) -> Version | None:
        """Return the version, or ``None`` if the origin does not send its length.

        The first attempt is a request with ``HEAD``, followed by one with ``GET`` if the origin
        refuses ``HEAD`` or answers it without a length. Later attempts are requests with ``GET``.
        """
        address = plain_address(self._url)
        if self._is_first:
            self._is_first = False
            status, found = await self._request("HEAD")
            if _is_transient(status):
                raise _PassingError(f"status {status}", status)
            if status < 400 and found is not None:
                return found
        status, found = await self._request("GET")
        if status >= 400:
            _check_status(address, status)
            raise OSError(f"{address}: the origin answered {status}")
        return found

    async def _request(self, method: str) -> tuple[int, Version | None]:
        import aiohttp

        options = {"allow_redirects": True, **self._target.kwargs}
        headers = {**options.pop("headers", {}), "Accept-Encoding": "identity"}
        session = await self._target.set_session()
        url = self._target.encode_url(self._url)
        try:
            async with session.request(method, url, headers=headers, **options) as answer:
                return answer.status, http_version(answer.headers)
        except aiohttp.ClientResponseError as error:
            # Sessions may raise statuses. What aiohttp raises may have the URL with its secrets.
            return error.status, None
        except aiohttp.ClientError as error:
            reason = type(error).__name__
        raise _PassingError(reason)


async def fetch(
    target: Any,
    url: str,
    version: Version,
    start: int,
    end: int,
    count: Callable[[int, int], None],
) -> bytes:
    """Fetch a range of one version."""

    async def once() -> bytes:
        return await _fetch_once(target, url, version, start, end)

    data = await repeat(url, once, partial(count, 1, 0))
    count(1, len(data))
    return data


async def repeat(
    url: str, once: Callable[[], Awaitable[T]], failed: Callable[[], None] = lambda: None
) -> T:
    """Make an attempt, and repeat it while it fails with an error that may pass."""
    import aiohttp

    for attempt in range(_RETRIES + 1):
        try:
            return await once()
        except (TimeoutError, aiohttp.ClientError, _PassingError) as error:
            failed()
            if attempt == _RETRIES:
                status = error.status if isinstance(error, _PassingError) else None
                if status is not None and not _is_unavailable(status):
                    raise OSError(f"{plain_address(url)}: the origin answered {status}") from None
                # The error of aiohttp may have the URL with all that is in it.
                reason = str(error) if isinstance(error, _PassingError) else type(error).__name__
                raise AwayError(f"{plain_address(url)}: no answer to be had: {reason}") from None
        await asyncio.sleep(_PAUSE * 2**attempt * random.uniform(0.5, 1.0))
    raise AssertionError("the last attempt answers or raises")


def is_unavailable(error: BaseException) -> bool:
    """Return whether an attempt failed because the origin is unavailable.

    A status that complains about the request (408, 425, 506 to 599) is an answer of an origin that
    is available.
    """
    if isinstance(error, _PassingError) and error.status is not None:
        return _is_unavailable(error.status)
    return is_silence(error)


def is_silence(error: BaseException) -> bool:
    """Return whether an attempt failed without an answer of the origin."""
    if isinstance(error, _PassingError):
        return error.status is None
    return isinstance(error, AwayError | ConnectionError | TimeoutError)


async def _fetch_once(target: Any, url: str, version: Version, start: int, end: int) -> bytes:
    options = dict(target.kwargs)
    headers = {**options.pop("headers", {}), "Range": f"bytes={start}-{end - 1}"}
    headers["Accept-Encoding"] = "identity"
    session = await target.set_session()
    async with session.get(target.encode_url(url), headers=headers, **options) as answer:
        _check(url, version, start, end, answer)
        if answer.status == 206:
            found: bytes = await answer.read()
        else:
            found = (await _beginning(answer, end))[start:]
    if len(found) != end - start:
        raise _PassingError(f"expected {end - start} bytes, found {len(found)}")
    return found


async def _beginning(answer: Any, end: int) -> bytes:
    """Read an answer that has all of the object up to a byte."""
    data = bytearray()
    async for piece in answer.content.iter_chunked(1 << 20):
        data += piece
        if len(data) >= end:
            break
    return bytes(data[:end])


def _check_status(address: str, status: int) -> None:
    """See whether an answer has bytes, or says that the range is not there."""
    if status in (404, 410):
        raise FileNotFoundError(address)
    if _is_transient(status):
        raise _PassingError(f"status {status}", status)
    if status in (401, 403, 407):
        raise PermissionError(f"{address}: not allowed: status {status}")
    if status not in (200, 206, 412, 416):
        raise OSError(f"{address}: the origin answered {status}")


def _check(url: str, version: Version, start: int, end: int, answer: Any) -> None:
    """See whether an answer is one with this range, or with all, of this version."""
    address, status = plain_address(url), answer.status
    _check_status(address, status)
    is_ = http_stamp(answer.headers.get("ETag"), answer.headers.get("Last-Modified"))
    total = None
    if status == 206:
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", answer.headers.get("Content-Range", ""))
        total = found and found[3]
        right = found and (int(found[1]), int(found[2])) == (start, end - 1)
        if is_ == version.stamp and not right:
            raise OSError(f"{address}: expected bytes {start} to {end - 1}, found other ones")
    elif status == 200:
        total = answer.headers.get("Content-Length")
    another = is_ != version.stamp or total not in (None, "*", str(version.size))
    if another or status in (412, 416):
        what = is_ or "another one"
        raise ChangedError(
            f"{address}: changed while it was read: was {version.described()}, is {what}", "changed"
        )
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise OSError(f"{address}: expected bytes as they are, found them encoded")
