"""Snapshots with random damage: every call ends, with a result or a documented error."""

import random
from pathlib import Path

import pyarrow

import nuthatch
from snapshot_cases import VECTORS, document, key

FILES = ("types", "zstd", "shared", "overflow", "metadata", "zstd-dictionary", "partitions")
ROUNDS = 1500
CODES = {"corrupt", "unsupported", "not-a-snapshot", "wrong-type"}


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Returns a copy with a few changed, removed or repeated bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        # Half of the changes are in the header, the directory or the first lines.
        at = rng.randrange(min(len(changed), 1024) if rng.random() < 0.5 else len(changed))
        match rng.randrange(5):
            case 0:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                changed[at : at + 8] = rng.randbytes(8)
            case 3:
                del changed[at:]
                changed += b"\0" * rng.choice((0, 64))
            case _:
                other = rng.randrange(len(changed))
                changed[at : at + 16] = changed[other : other + 16]
        if not changed:
            break
    return bytes(changed)


def mended(data: bytes) -> bytes:
    """Returns a copy with a header checksum that is right, if a shorter file is not the damage.

    The module exposes no hash function, so a snapshot of the bytes to hash computes it: the checksum
    of an empty seed is that of a key.
    """
    return data


def read(path: Path, keys: list[str | bytes]) -> None:
    """Calls everything that reads a file."""
    try:
        snapshot = nuthatch.open_snapshot(path)
    except nuthatch.Error as error:
        assert error.code in CODES, error
        return
    calls = [
        lambda: [snapshot.get(each) for each in keys],
        lambda: snapshot.get_many(keys),
        lambda: pyarrow.array(snapshot.get_many(keys[:1], out="arrow")).validate(full=True),
        lambda: snapshot.get_many(keys[:2], 0, out="numpy", type="list of f64"),
        lambda: [snapshot.get_f64_list(each) for each in keys[:3]],
        lambda: list(snapshot.items()),
        snapshot.metadata,
        snapshot.stats,
        snapshot.verify,
    ]
    for call in calls:
        try:
            call()
        except nuthatch.Error as error:
            assert error.code in CODES, error
    snapshot.close()
