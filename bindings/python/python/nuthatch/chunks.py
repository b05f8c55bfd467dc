"""The chunk cache: verified ranges of remote objects on the local disk, shared by all processes.

``Chunks`` opens a folder. It stores chunks of any length under a name, and objects with an address
as blocks of equal length (``Chunks.blocks``). A missing chunk is no error: lookups return a
``Missing``, which is false. ``nuthatch.fs`` is a filesystem that reads through the cache.
"""

from nuthatch._native import (
    Chunks,
    _merge_gaps,
)
from nuthatch._native import ChunksBlocks as Blocks
from nuthatch._native import ChunksFlight as Flight
from nuthatch._native import ChunksKey as Key
from nuthatch._native import ChunksMissing as Missing
from nuthatch._native import ChunksObject as Object
from nuthatch._native import ChunksRead as Read
from nuthatch._native import ChunksSingleFlight as SingleFlight
from nuthatch._native import ChunksStat as Stat
from nuthatch._native import ChunksStored as Stored
from nuthatch._native import ChunksVerified as Verified
from nuthatch._native import ChunksView as View
from nuthatch._native import ChunksWaiter as Waiter
from nuthatch.options import ChunksOptions

__all__ = [
    "Blocks",
    "Chunks",
    "ChunksOptions",
    "Flight",
    "Key",
    "Missing",
    "Object",
    "Read",
    "SingleFlight",
    "Stat",
    "Stored",
    "Verified",
    "View",
    "Waiter",
    "merge_gaps",
]


def merge_gaps(missing: list[tuple[int, int]], max_gap: int, max_len: int) -> list[tuple[int, int]]:
    """Merges missing ranges, so that fewer requests fetch them, with some bytes in between.

    Args:
        missing: Ranges as pairs of a start and an end in bytes, in order.
        max_gap: Maximum number of bytes between two ranges that are merged.
        max_len: Maximum length of a merged range in bytes.

    Returns:
        The merged ranges, in order.
    """
    return _merge_gaps(missing, max_gap, max_len)
