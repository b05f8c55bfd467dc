"""Versions of objects that are recorded in the cache, and used while the target is unavailable."""

from __future__ import annotations

import asyncio
import time

from nuthatch.chunks import Chunks, Key
from nuthatch.errors import Error
from nuthatch.fs.addresses import address_of, site_of
from nuthatch.fs.http import is_silence, is_unavailable
from nuthatch.fs.origins import Origin
from nuthatch.fs.versions import Version, is_http

# Maximum time of an attempt to request the version before a recorded one is used, and time for
# which a target that sent no response is not contacted again, in seconds. The Rust code has the
# same limits.
_CHECK_WITHIN = 1.0
_UNAVAILABLE_TIME = 5.0
# Maximum number of unavailable hosts that are remembered.
_MAX_UNAVAILABLE = 4096
# Interval in seconds between records of the same version.
_RECORD_INTERVAL = 60.0


class Recorded:
    """Versions that are recorded in the folder of the cache."""

    def __init__(self, origin: Origin, chunks: Chunks | None, max_stale: float | None) -> None:
        """Stores the settings.

        Args:
            origin: The filesystem behind the cache.
            chunks: The cache; ``None`` if it cannot be opened.
            max_stale: Maximum age in seconds of a version that is used while the target is
                unavailable; ``None`` for the age that the target allows.
        """
        self._origin = origin
        self._chunks = chunks
        self._max_stale = max_stale
        self._written: dict[str, tuple[tuple[Version, int | None], float]] = {}
        # Monotonic time from which on an unavailable host is contacted again.
        self._unavailable_until: dict[str, float] = {}

    async def version(self, path: str) -> Version | None:
        """Returns the current version, or the recorded one if the target is unavailable.

        Returns:
            The version; ``None`` if the object cannot be cached.
        """
        if self._origin.offline:
            known = await self.known(path)
            # Without a record, this raises the error for ``offline``.
            return known or await self._origin.version(path)
        site = site_of(self._origin.target, path)
        if time.monotonic() < self._unavailable_until.get(site, 0.0):
            known = await self.known(path)
            if known is not None:
                return known
        request = self._origin.version_request(path)
        is_recalled = False

        async def attempt() -> Version | None:
            nonlocal is_recalled
            if is_recalled:
                return await request()
            check = asyncio.ensure_future(request())
            try:
                await asyncio.wait([check], timeout=_CHECK_WITHIN)
                error = check.exception() if check.done() else TimeoutError()
                if error is not None and is_unavailable(error):
                    is_recalled = True
                    known = await self.known(path)
                    if known is not None:
                        if is_silence(error):
                            self._record_unavailable(site)
                        return known
                return await check
            finally:
                check.cancel()
                await asyncio.gather(check, return_exceptions=True)

        found = await self._origin.repeat(path, attempt)
        if found is None or not found.is_stale:
            self._unavailable_until.pop(site, None)
        return found

    def _record_unavailable(self, site: str) -> None:
        if len(self._unavailable_until) >= _MAX_UNAVAILABLE:
            self._unavailable_until.clear()
        self._unavailable_until[site] = time.monotonic() + _UNAVAILABLE_TIME

    async def known(self, path: str) -> Version | None:
        """Returns the recorded version if it may be used without the target; otherwise ``None``."""
        if self._chunks is None:
            return None
        address = address_of(self._origin.target, path)
        found = await self._origin.in_thread(self._chunks._metadata, address)
        if found is None:
            return None
        validator, size, checked, allowed = found
        max_age = allowed if self._max_stale is None else self._max_stale
        # A time in the future was recorded by a machine with another clock.
        is_recent = max_age is not None and 0 <= time.time() - checked <= max_age
        # Offline, any age is accepted unless ``max_stale`` limits it.
        if not is_recent and not (self._origin.offline and self._max_stale is None):
            return None
        return Version(size, validator, validator, allowed, is_stale=True)

    def record(self, path: str, version: Version, key: Key) -> None:
        """Records a version that the target confirmed, at most once per interval.

        Args:
            path: Path of the object.
            version: The version.
            key: Key of the object in the cache.
        """
        if self._chunks is None or version.is_stale or version.validator is None:
            return
        confirmed = (version, version.stale_if_error)
        before, at = self._written.get(path, (None, 0.0))
        if before == confirmed and time.monotonic() - at < _RECORD_INTERVAL:
            return
        self._written[path] = (confirmed, time.monotonic())
        etag, modified = _http_validators(version.validator)
        if not is_http(self._origin.target):
            etag = modified = None
        try:
            self._chunks._record(key, etag, modified, version.stale_if_error)
        except Error:
            # The record is needed only if the target becomes unavailable later.
            return


def _http_validators(validator: str) -> tuple[str | None, str | None]:
    """Splits a validator into a tag and a time of modification."""
    if validator.startswith('"'):
        return validator, None
    if validator[:2].lower() == "w/":
        end = validator.rfind('"') + 1
        return validator[:end], validator[end:].strip() or None
    return None, validator
