"""The chunk cache: ranges of remote objects on local disk, verified, shared by all processes.

``Chunks`` opens a folder. What it has are chunks of any lengths under a name, or blocks of
something that has an address: ``Chunks.blocks``. That something is missing is no error: lookups
answer what was found, or ``Missing``, which is false. ``nuthatch.fs`` has a filesystem over it.
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
    """Merge ranges between which there are at most ``max_gap`` bytes, up to ``max_len`` bytes.

    Fewer requests, for a few bytes too many.
    """
    return _merge_gaps(missing, max_gap, max_len)
