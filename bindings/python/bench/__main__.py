"""Compares the ordered store with py-lmdb, in one process and one run.

    python bench [--rows N] [--rounds N] [--folder FOLDER]

In every round, each operation runs on one system after the other. Prints the times of the rounds
and the ratio of the medians. No commit of either system waits for the disk, so the time is the cost
of a row.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

import nuthatch

Row = tuple[bytes, bytes]
VALUE = b"v" * 100


def rows(count: int) -> Iterator[Row]:
    return ((b"%012d" % n, VALUE) for n in range(count))


class Ours:
    name = "nuthatch"

    def __init__(self, folder: Path) -> None:
        self.store = nuthatch.open(folder, durability="none")

    def load_sorted(self, count: int) -> None:
        with self.store.write() as txn:
            txn.append_many(rows(count))

    def load_one_by_one(self, count: int) -> None:
        with self.store.write() as txn:
            for key, value in rows(count):
                txn.put(key, value)

    def get(self, keys: list[bytes]) -> int:
        with self.store.read() as transaction:
            get = transaction.get
            return sum(get(key) is not None for key in keys)

    def get_many(self, keys: list[bytes]) -> int:
        with self.store.read() as transaction:
            return sum(value is not None for value in transaction.get_many(keys))

    def scan(self) -> int:
        count = 0
        for batch in self.store.scan():
            for _key, _value in batch:
                count += 1
        return count

    def keys(self) -> int:
        return sum(len(batch.keys()) for batch in self.store.scan(keys_only=True))

    def clear(self) -> None:
        self.store.delete_range()

    def close(self) -> None:
        self.store.close()


class PyLmdb:
    name = "py-lmdb"

    def __init__(self, folder: Path) -> None:
        self.environment = lmdb.open(str(folder), map_size=1 << 36, max_dbs=4, sync=False)
        self.table = self.environment.open_db(b"default")

    def load_sorted(self, count: int) -> None:
        with self.environment.begin(write=True, db=self.table) as txn, txn.cursor() as cursor:
            cursor.putmulti(rows(count), append=True)

    def load_one_by_one(self, count: int) -> None:
        with self.environment.begin(write=True, db=self.table) as txn:
            for key, value in rows(count):
                txn.put(key, value)

    def get(self, keys: list[bytes]) -> int:
        with self.environment.begin(db=self.table) as txn:
            get = txn.get
            return sum(get(key) is not None for key in keys)

    def get_many(self, keys: list[bytes]) -> int:
        with self.environment.begin(db=self.table) as txn, txn.cursor() as cursor:
            return len(cursor.getmulti(keys))

    def scan(self) -> int:
        count = 0
        with self.environment.begin(db=self.table) as txn, txn.cursor() as cursor:
            for _key, _value in cursor:
                count += 1
        return count

    def keys(self) -> int:
        with self.environment.begin(db=self.table) as txn, txn.cursor() as cursor:
            return len(list(cursor.iternext(keys=True, values=False)))

    def clear(self) -> None:
        with self.environment.begin(write=True) as txn:
            txn.drop(self.table, delete=False)

    def close(self) -> None:
        self.environment.close()


def seconds(operation: Callable[[], object]) -> float:
    start = time.perf_counter()
    operation()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the stores are made and removed")
    wanted = parser.parse_args()
    count = wanted.rows
    draw = random.Random(1)
    asked = [b"%012d" % draw.randrange(count) for _ in range(min(count, 300_000))]

    folder = Path(tempfile.mkdtemp(dir=wanted.folder))
    systems: list[Ours | PyLmdb] = [Ours(folder / "nuthatch"), PyLmdb(folder / "py-lmdb")]
    operations: list[tuple[str, int, Callable[[Ours | PyLmdb], object]]] = [
        ("load, a call for each row", count, lambda system: system.load_one_by_one(count)),
        ("load in order, one call", count, lambda system: system.load_sorted(count)),
        ("random get", len(asked), lambda system: system.get(asked)),
        ("random get, many at a time", len(asked), lambda system: system.get_many(asked)),
        ("scan of keys and values", count, lambda system: system.scan()),
        ("scan of keys", count, lambda system: system.keys()),
    ]
    print(f"{count} rows of {12 + len(VALUE)} bytes, {wanted.rounds} rounds, M rows/s")
    try:
        for name, done, operation in operations:
            rates: dict[str, list[float]] = {system.name: [] for system in systems}
            for round_ in range(wanted.rounds):
                for system in systems if round_ % 2 else systems[::-1]:
                    if name.startswith("load"):
                        system.clear()
                    time_ = seconds(lambda: operation(system))  # noqa: B023
                    rates[system.name].append(done / time_ / 1e6)
            ours, theirs = (statistics.median(rates[system.name]) for system in systems)
            shown = ("  ".join(f"{rate:.2f}" for rate in rates[system.name]) for system in systems)
            print(f"{name:28} ratio {ours / theirs:.2f}   nuthatch {next(shown)}", end="   ")
            print(f"py-lmdb {next(shown)}")
    finally:
        for system in systems:
            system.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
