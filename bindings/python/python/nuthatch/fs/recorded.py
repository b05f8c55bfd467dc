"""What targets said of objects, recorded in the cache: read while the target is away."""

from __future__ import annotations

import asyncio
import time

from nuthatch.chunks import Chunks, Key
from nuthatch.errors import Error
from nuthatch.fs.addresses import address_of
from nuthatch.fs.http import AwayError
from nuthatch.fs.origins import Origin
from nuthatch.fs.versions import Version, is_http

# How long a target may take to tell a version where the cache has one, and for how long it is not
# asked after that, in seconds.
_CHECK_WITHIN = 1.0
_AWAY = 5.0
# How old the time of the last check in the folder may be, in seconds.
_RECORD_INTERVAL = 60.0


class Recorded:
    """Versions that were recorded in a folder."""

    def __init__(self, origin: Origin, chunks: Chunks | None, max_stale: float | None) -> None:
        """Have nothing recorded yet."""
        self._origin = origin
        self._chunks = chunks
        self._max_stale = max_stale
        self._written: dict[str, tuple[Version, float]] = {}
        self._away_until = 0.0

    async def version(self, path: str) -> Version | None:
        """Ask for an object as it is now, or as it was recorded if the target is away."""
        if self._origin.offline:
            known = await self.known(path)
            # Without one, the target says that it must not be asked.
            return known or await self._origin.version(path)
        known = await self.known(path) if self._max_stale else None
        if known is None:
            return await self._origin.version(path)
        if time.monotonic() < self._away_until:
            return known
        try:
            return await asyncio.wait_for(self._origin.version(path), _CHECK_WITHIN)
        except (AwayError, ConnectionError, TimeoutError):
            self._away_until = time.monotonic() + _AWAY
            return known

    async def known(self, path: str) -> Version | None:
        """Tell the version that was recorded, if it is recent enough."""
        if self._chunks is None:
            return None
        address = address_of(self._origin.target, path)
        found = await self._origin.in_thread(self._chunks._metadata, address)
        if found is None:
            return None
        validator, size, checked = found
        # A time to come is the clock of another machine.
        age = time.time() - checked
        if self._max_stale is not None and not 0 <= age <= self._max_stale:
            return None
        return Version(size, validator, validator)

    def record(self, path: str, version: Version, key: Key) -> None:
        """Record a version that the target has, unless that was done a moment ago."""
        before, at = self._written.get(path, (None, 0.0))
        if self._origin.offline or self._chunks is None or version.validator is None:
            return
        if before == version and time.monotonic() - at < _RECORD_INTERVAL:
            return
        self._written[path] = (version, time.monotonic())
        etag, modified = _http_validators(version.validator)
        if not is_http(self._origin.target):
            etag = modified = None
        try:
            self._chunks._record(key, etag, modified)
        except Error:
            # What cannot be recorded is missing when the target is away, and no harm now.
            return


def _http_validators(validator: str) -> tuple[str | None, str | None]:
    """Divide a validator into a tag and a time."""
    if validator.startswith('"'):
        return validator, None
    if validator[:2].lower() == "w/":
        end = validator.rfind('"') + 1
        return validator[:end], validator[end:].strip() or None
    return None, validator
