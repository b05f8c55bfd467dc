"""Snapshots with random damage: every call ends, with a result or a documented error."""

import random
import struct
from pathlib import Path

import pyarrow
import xxhash

import nuthatch
from snapshot_cases import VECTORS, document, key

FILES = ("types", "zstd", "shared", "overflow", "metadata", "zstd-dictionary", "partitions")
ROUNDS = 1_500
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
    """Returns a copy with the checksums that its bytes have, as far as they are where they were."""
    if len(data) < 512:
        return data
    file = bytearray(data)

    def mend(at: int, start: int, length: int) -> None:
        struct.pack_into("<Q", file, at, xxhash.xxh3_64_intdigest(file[start : start + length]))

    dictionary, directory, index, content = struct.iter_unpack("<QQ", file[56:120])
    partitions = directory[1] // 32
    if directory[0] + directory[1] <= len(file) and 0 < partitions < 64:
        length = index[1] // partitions
        for number in range(partitions):
            entry = directory[0] + 32 * number
            start, data_length = struct.unpack_from("<QQ", file, entry)
            mend(entry + 16, index[0] + number * length, length)
            mend(entry + 24, content[0] + start, data_length)
    mend(120, *dictionary)
    mend(128, *directory)
    mend(504, 0, 504)
    return bytes(file)


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
        lambda: snapshot.get_many(keys[:2], 0, out="numpy", value_type="list of f64"),
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


def test_random_damage_is_a_documented_error_or_a_result(tmp_path: Path) -> None:
    rng = random.Random(20261124)
    path = tmp_path / "damaged.nut"
    for name in FILES:
        good = (VECTORS / f"v1/{name}.nut").read_bytes()
        entries = document(f"v1/{name}.nut")["entries"]
        keys = [key(entry["key"]) for entry in entries[:40]]
        for number in range(ROUNDS):
            data = mutated(good, rng)
            # Not the file of the round before, which may still be mapped by an array.
            path.unlink(missing_ok=True)
            path.write_bytes(mended(data) if number % 2 else data)
            read(path, keys)
