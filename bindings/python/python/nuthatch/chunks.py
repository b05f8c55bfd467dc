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
from nuthatch._native import ChunksClaim as Claim
from nuthatch._native import ChunksKey as Key
from nuthatch._native import ChunksMissing as Missing
from nuthatch._native import ChunksObject as Object
from nuthatch._native import ChunksRead as Read
from nuthatch._native import ChunksStat as Stat
from nuthatch._native import ChunksStored as Stored
from nuthatch._native import ChunksTicket as Ticket
from nuthatch._native import ChunksVerified as Verified
from nuthatch._native import ChunksView as View
from nuthatch._native import ChunksWaiting as Waiting
from nuthatch.options import ChunksOptions

__all__ = [
    "Blocks",
    "Chunks",
    "ChunksOptions",
    "Claim",
    "Key",
    "Missing",
    "Object",
    "Read",
    "Stat",
    "Stored",
    "Ticket",
    "Verified",
    "View",
    "Waiting",
    "merge_gaps",
]


def merge_gaps(
    missing: list[tuple[int, int]], gap_most: int, longest: int
) -> list[tuple[int, int]]:
    """Merge ranges between which there are at most ``gap_most`` bytes, up to ``longest`` bytes.

    Fewer requests, for a few bytes too many.
    """
    return _merge_gaps(missing, gap_most, longest)
