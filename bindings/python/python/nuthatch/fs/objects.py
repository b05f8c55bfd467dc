"""One version of one object, read through the cache."""

from __future__ import annotations

import asyncio
import time

from fsspec.asyn import sync

from nuthatch.chunks import Blocks, Chunks, Flight, Missing, Waiter, merge_gaps
from nuthatch.errors import ChangedError, ConflictError, Error
from nuthatch.fs.origins import AT_ONCE, Origin, Range, together
from nuthatch.fs.versions import Version

FetchedParts = list[tuple[int, bytes]]

# First and longest pause in seconds between checks for bytes that another process fetches, and the
# maximum time without progress, after which this process fetches them, too.
_FIRST_LOOK = 0.002
_LAST_LOOK = 0.05
_PATIENCE = 30.0


class CachedObject:
    """An object in the version that was opened. Threads and tasks can share it."""

    def __init__(
        self,
        origin: Origin,
        path: str,
        version: Version,
        chunks: Chunks,
        blocks: Blocks,
        *,
        max_gap: int,
        max_request_len: int,
    ) -> None:
        """Stores the version and the blocks. Reads nothing.

        Args:
            origin: The filesystem behind the cache.
            path: Path of the object.
            version: The version to read.
            chunks: The cache.
            blocks: The blocks of this version in the cache.
            max_gap: Maximum number of cached bytes between missing ranges that are fetched
                together.
            max_request_len: Maximum number of bytes of one request.
        """
        self.origin = origin
        self.path = path
        self.version = version
        self.size = version.size
        self.blocks = blocks
        self._chunks = chunks
        self._max_gap = max_gap
        # The response of a request is stored by one put.
        max_len = min(max_request_len, chunks.max_put_len)
        self._max_request_len = max(max_len - max_len % blocks.block_len, blocks.block_len)

    @property
    def address(self) -> str:
        """Returns the address of the object, without secrets."""
        return str(self.blocks.key.address)

    def read(self, start: int, end: int, loop: asyncio.AbstractEventLoop) -> bytes:
        """Reads a range on a thread that may block.

        Args:
            start: First byte of the range.
            end: End of the range, excluded.
            loop: The event loop that fetches missing bytes.
        """
        found = self._get(start, end, [])
        if isinstance(found, Missing):
            found = sync(loop, self._read_missing, start, end, found)
        return found

    def read_into(self, start: int, out: memoryview, loop: asyncio.AbstractEventLoop) -> int:
        """Fills a buffer, on a thread that may block.

        Args:
            start: First byte to read.
            out: The buffer. It must not reach beyond the end of the object.
            loop: The event loop that fetches missing bytes.

        Returns:
            The number of bytes.
        """
        fetched: FetchedParts = []
        while isinstance(found := self.blocks.get_into(start, out, fetched), Missing):
            fetched = sync(loop, self._more, fetched, found.ranges)
        return found

    async def read_async(self, start: int, end: int) -> bytes:
        """Reads a range in a task. ``end`` is excluded."""
        found = await self.origin.in_thread(self._get, start, end, [])
        if isinstance(found, Missing):
            found = await self._read_missing(start, end, found)
        return found

    async def read_ranges(self, ranges: list[Range]) -> list[bytes]:
        """Reads several ranges, and fetches their missing bytes together."""
        missing = await self.origin.in_thread(self._missing, ranges)
        fetched = await self._more([], missing) if missing else []
        found = await self.origin.in_thread(self._get_all, ranges, fetched)
        return [
            await self._read_missing(start, end, data) if isinstance(data, Missing) else data
            for (start, end), data in zip(ranges, found, strict=True)
        ]

    def _missing(self, ranges: list[Range]) -> list[Range]:
        gaps = {
            gap for start, end in ranges if start < end for gap in self.blocks.missing(start, end)
        }
        merged: list[Range] = []
        for start, end in sorted(gaps):
            # Gaps of overlapping ranges can overlap.
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _get(self, start: int, end: int, fetched: FetchedParts) -> bytes | Missing:
        return self.blocks.get(start, end, fetched) if start < end else b""

    def _get_all(self, ranges: list[Range], fetched: FetchedParts) -> list[bytes | Missing]:
        return [self._get(start, end, fetched) for start, end in ranges]

    async def _read_missing(self, start: int, end: int, missing: Missing) -> bytes:
        fetched = await self._more([], missing.ranges)
        # Bytes that another thread or process fetched can be evicted before this read.
        while isinstance(
            found := await self.origin.in_thread(self._get, start, end, fetched), Missing
        ):
            fetched = await self._more(fetched, found.ranges)
        return found

    async def _more(self, fetched: FetchedParts, missing: list[Range]) -> FetchedParts:
        return sorted(fetched + await self.fetch(missing), key=lambda piece: piece[0])

    async def fetch(self, missing: list[Range]) -> FetchedParts:
        """Fetches missing ranges, and waits for other readers that already fetch them.

        Args:
            missing: Pairs of a start and an end in bytes.

        Returns:
            Pairs of an offset and bytes; without those that another reader stored in the cache.
        """
        wanted = [
            (at, min(at + self._max_request_len, end))
            for start, end in merge_gaps(missing, self._max_gap, self._max_request_len)
            for at in range(start, end, self._max_request_len)
        ]
        flights, waiters = await self.origin.in_thread(self._single_flight, wanted)
        fetched = await self._fetch_flights(flights)
        for waiter in waiters:
            data = await waiter
            if data is not None:
                fetched.append((waiter.range[0], data))
        return fetched

    def _single_flight(self, wanted: list[Range]) -> tuple[list[Flight], list[Waiter]]:
        fetches = self.blocks.single_flight(wanted)
        return fetches.flights, fetches.waiters

    async def _fetch_flights(self, flights: list[Flight]) -> FetchedParts:
        fetched: FetchedParts = []
        left, pause, since = flights, _FIRST_LOOK, time.monotonic()
        try:
            while left:
                patient = time.monotonic() - since < _PATIENCE
                to_fetch, left = await self.origin.in_thread(self._divide, left, patient)
                if to_fetch:
                    fetched += await self._fetch(to_fetch)
                    pause, since = _FIRST_LOOK, time.monotonic()
                elif left:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LAST_LOOK)
        finally:
            for flight in flights:
                flight.give_up()
        return fetched

    def _divide(self, flights: list[Flight], patient: bool) -> tuple[list[Flight], list[Flight]]:
        """Separates the flights to fetch now from those that another process fetches."""
        to_fetch: list[Flight] = []
        left: list[Flight] = []
        for flight in flights:
            has = flight.try_fetch_lock() or not patient
            # Another process may have stored it since the lookup.
            if not self.blocks.missing(*flight.range):
                flight.give_up()
            else:
                (to_fetch if has else left).append(flight)
        return to_fetch, left

    async def _fetch(self, flights: list[Flight]) -> FetchedParts:
        # Each group is stored when it arrives, since later ones can fail.
        size = self.origin.checked_at_once
        groups = [flights[at : at + size] for at in range(0, len(flights), size)]
        at_once = asyncio.Semaphore(AT_ONCE // size)

        async def fetch(group: list[Flight]) -> FetchedParts:
            async with at_once:
                ranges = [flight.range for flight in group]
                found = await self.origin.fetch(self.path, self.version, ranges)
                await self.origin.in_thread(self._keep, group, found)
            return [(start, data) for (start, _), data in zip(ranges, found, strict=True)]

        pieces = await together([fetch(group) for group in groups])
        return [piece for group in pieces for piece in group]

    def _keep(self, flights: list[Flight], found: list[bytes]) -> None:
        try:
            for flight, data in zip(flights, found, strict=True):
                flight.finish(data)
        except ConflictError as error:
            # Two contents have the same version, so neither can be trusted.
            self._chunks._discard(self.blocks.key)
            message = f"{self.address}: has other bytes than before, and the same version"
            raise ChangedError(message, "changed") from error
        except Error:
            # The bytes are returned even if the cache cannot store them.
            return
