"""HTTP requests: versions of objects, and ranges that are checked against the opened version.

Calls of fsspec return only the bytes. The requests here compare the tag, range and length of each
response with the opened version, so a change is detected without another request.
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

# Maximum number of retries after a transient failure, and the first pause in seconds.
_RETRIES = 4
_PAUSE = 0.1


class _PassingError(OSError):
    """A transient failure of a request."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        """Stores the reason and the status of the response; ``None`` if there was no response."""
        super().__init__(reason)
        self.status = status


class OriginUnavailableError(OSError):
    """An origin that cannot be reached or is unavailable, after retries."""


async def info(target: Any, url: str) -> dict[str, Any]:
    """Returns the information of fsspec about an object.

    Distinguishes other failures from a missing object, which fsspec's own call does not.

    Args:
        target: The HTTP filesystem.
        url: URL of the object.

    Raises:
        FileNotFoundError: The origin has no such object.
        PermissionError: The origin does not permit the request.
        OriginUnavailableError: The origin is unavailable after retries.
    """
    import aiohttp

    async def once() -> dict[str, Any]:
        try:
            found: dict[str, Any] = await target._info(url)
        except FileNotFoundError as error:
            cause = error.__cause__
        else:
            return found
        # Outside the handler: its error would be the context of this one, and contains the complete
        # URL with secrets.
        if isinstance(cause, aiohttp.ClientResponseError):
            _check_status(plain_address(url), cause.status)
        raise cause or FileNotFoundError(plain_address(url))

    return await repeat(url, once)


class VersionRequest:
    """Requests for the version of an object, which read only the head of a response."""

    def __init__(self, target: Any, url: str) -> None:
        """Prepares the requests. Makes none."""
        self._target = target
        self._url = url
        self._is_first = True

    async def attempt(self) -> Version | None:
        """Requests the version once; returns ``None`` if the origin does not send its length.

        The first attempt is a request with ``HEAD``, followed by one with ``GET`` if the origin
        refuses ``HEAD`` or omits the length in its response. Later attempts are requests with
        ``GET``.

        Raises:
            FileNotFoundError: The origin has no such object.
            PermissionError: The origin does not permit the request.
            OSError: The request failed otherwise.
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
            raise OSError(f"{address}: the origin responded with {status}")
        return found

    async def _request(self, method: str) -> tuple[int, Version | None]:
        import aiohttp

        options = {"allow_redirects": True, **self._target.kwargs}
        headers = {**options.pop("headers", {}), "Accept-Encoding": "identity"}
        session = await self._target.set_session()
        url = self._target.encode_url(self._url)
        try:
            async with session.request(method, url, headers=headers, **options) as response:
                return response.status, http_version(response.headers)
        except aiohttp.ClientResponseError as error:
            # A session can be configured to raise an error for a status. Errors of aiohttp can
            # contain the URL with secrets, so they are not passed on.
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
    """Fetches a range of one version.

    Args:
        target: The HTTP filesystem.
        url: URL of the object.
        version: The expected version.
        start: First byte of the range.
        end: End of the range, excluded.
        count: Receives the number of requests and of bytes of each attempt.

    Returns:
        The bytes of the range.

    Raises:
        ChangedError: The origin has another version.
        OriginUnavailableError: The origin is unavailable after retries.
    """

    async def once() -> bytes:
        return await _fetch_once(target, url, version, start, end)

    data = await repeat(url, once, partial(count, 1, 0))
    count(1, len(data))
    return data


async def repeat(
    url: str, once: Callable[[], Awaitable[T]], failed: Callable[[], None] = lambda: None
) -> T:
    """Runs an attempt, and repeats it after transient failures.

    Args:
        url: URL for messages.
        once: Makes one attempt.
        failed: Is called after each transient failure.

    Returns:
        The result of the attempt that succeeded.

    Raises:
        OriginUnavailableError: The origin is unavailable after retries.
        OSError: The last status is an error of an origin that is available.
    """
    import aiohttp

    for attempt in range(_RETRIES + 1):
        try:
            return await once()
        except (TimeoutError, aiohttp.ClientError, _PassingError) as error:
            failed()
            if attempt == _RETRIES:
                status = error.status if isinstance(error, _PassingError) else None
                if status is not None and not _is_unavailable(status):
                    address = plain_address(url)
                    raise OSError(f"{address}: the origin responded with {status}") from None
                # Errors of aiohttp can contain the complete URL with secrets.
                reason = str(error) if isinstance(error, _PassingError) else type(error).__name__
                address = plain_address(url)
                message = f"{address}: no response from the origin: {reason}"
                raise OriginUnavailableError(message) from None
        await asyncio.sleep(_PAUSE * 2**attempt * random.uniform(0.5, 1.0))
    raise AssertionError("the last attempt returns or raises")


def is_unavailable(error: BaseException) -> bool:
    """Returns whether an attempt failed because the origin is unavailable.

    Statuses that reject the request (408, 425, 506 to 599) are responses of an available origin.
    """
    if isinstance(error, _PassingError) and error.status is not None:
        return _is_unavailable(error.status)
    return is_silence(error)


def is_silence(error: BaseException) -> bool:
    """Returns whether an attempt failed without a response of the origin."""
    if isinstance(error, _PassingError):
        return error.status is None
    return isinstance(error, OriginUnavailableError | ConnectionError | TimeoutError)


async def _fetch_once(target: Any, url: str, version: Version, start: int, end: int) -> bytes:
    options = dict(target.kwargs)
    headers = {**options.pop("headers", {}), "Range": f"bytes={start}-{end - 1}"}
    headers["Accept-Encoding"] = "identity"
    session = await target.set_session()
    async with session.get(target.encode_url(url), headers=headers, **options) as response:
        _check(url, version, start, end, response)
        if response.status == 206:
            found: bytes = await response.read()
        else:
            found = (await _beginning(response, end))[start:]
    if len(found) != end - start:
        raise _PassingError(f"expected {end - start} bytes, found {len(found)}")
    return found


async def _beginning(response: Any, end: int) -> bytes:
    """Reads the first ``end`` bytes of a response that contains the whole object."""
    data = bytearray()
    async for piece in response.content.iter_chunked(1 << 20):
        data += piece
        if len(data) >= end:
            break
    return bytes(data[:end])


def _check_status(address: str, status: int) -> None:
    """Raises an error unless the status means data, a changed object or a missing range."""
    if status in (404, 410):
        raise FileNotFoundError(address)
    if _is_transient(status):
        raise _PassingError(f"status {status}", status)
    if status in (401, 403, 407):
        raise PermissionError(f"{address}: access denied: status {status}")
    if status not in (200, 206, 412, 416):
        raise OSError(f"{address}: the origin responded with {status}")


def _check(url: str, version: Version, start: int, end: int, response: Any) -> None:
    """Raises an error unless a response contains this range, or all bytes, of this version."""
    address, status = plain_address(url), response.status
    _check_status(address, status)
    is_ = http_stamp(response.headers.get("ETag"), response.headers.get("Last-Modified"))
    total = None
    if status == 206:
        content_range = response.headers.get("Content-Range", "")
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", content_range)
        total = found and found[3]
        right = found and (int(found[1]), int(found[2])) == (start, end - 1)
        if is_ == version.stamp and not right:
            raise OSError(f"{address}: expected bytes {start} to {end - 1}, found other ones")
    elif status == 200:
        total = response.headers.get("Content-Length")
    another = is_ != version.stamp or total not in (None, "*", str(version.size))
    if another or status in (412, 416):
        what = is_ or "another one"
        raise ChangedError(
            f"{address}: changed while it was read: was {version.described()}, is {what}", "changed"
        )
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise OSError(f"{address}: expected a body without encoding, found an encoded one")
