"""Helpers with which one test covers blocking and asynchronous stores."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import TypeVar, overload

import nuthatch

T = TypeVar("T")
Store = nuthatch.Store | nuthatch.AsyncStore
Scan = nuthatch.Scan | nuthatch.AsyncScan


@overload
async def settle(
    answer: nuthatch.Table | Awaitable[nuthatch.AsyncTable],
) -> nuthatch.Table | nuthatch.AsyncTable: ...
@overload
async def settle(
    answer: nuthatch.Ack | Awaitable[Awaitable[nuthatch.Written]],
) -> nuthatch.Ack | Awaitable[nuthatch.Written]: ...
@overload
async def settle(answer: T | Awaitable[T]) -> T: ...
async def settle(answer: object) -> object:
    """Returns the result of a call, and awaits it if it is awaitable."""
    return await answer if isawaitable(answer) else answer


@asynccontextmanager
async def entered(thing: T) -> AsyncIterator[T]:
    """Enters ``async with`` if the object supports it, otherwise ``with``."""
    if hasattr(thing, "__aenter__"):
        async with thing as inner:  # type: ignore[attr-defined]
            yield inner
    else:
        with thing as inner:  # type: ignore[attr-defined]
            yield inner


async def batches(scan: Scan) -> AsyncIterator[nuthatch.RowBatch]:
    if isinstance(scan, nuthatch.AsyncScan):
        async for batch in scan:
            yield batch
    else:
        for batch in scan:
            yield batch


async def rows(scan: Scan) -> list[tuple[bytes, bytes]]:
    return [row async for batch in batches(scan) for row in batch]


async def keys(scan: Scan) -> list[bytes]:
    return [key for key, _ in await rows(scan)]


async def changes(watch: nuthatch.Watch | nuthatch.AsyncWatch) -> list[nuthatch.Change]:
    """Returns the next changes of a watch."""
    if isinstance(watch, nuthatch.AsyncWatch):
        return await anext(aiter(watch))
    return next(watch)
