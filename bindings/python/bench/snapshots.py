"""Compares lookups in a snapshot with a dict, py-lmdb and cdbx, in one process and one run.

    python bench/snapshots.py SNAPSHOT [--rows N] [--runs N]

If there is no file at SNAPSHOT, builds one: keys `key_0`, `key_1` … with values `val_0`, `val_1` …
The keys are looked up in a shuffled order, which is the same each time. In each run, every system
does the work once. Prints a JSON object for each system and operation: the median time of a lookup.
Also measures opening the file that BENCH_OPEN_FILE names, if it is set.
"""

import argparse
import gc
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cdbx
import lmdb

import nuthatch

BATCH = 10_000

Work = Callable[[list[str]], None]


def of_dict(rows: dict[str, str]) -> Work:
    def work(keys: list[str]) -> None:
        for key in keys:
            rows[key]

    return work


def of_snapshot(snapshot: nuthatch.Snapshot) -> Work:
    def work(keys: list[str]) -> None:
        for key in keys:
            snapshot[key]

    return work


def of_get(get: Callable[[str], object]) -> Work:
    def work(keys: list[str]) -> None:
        for key in keys:
            get(key)

    return work


def of_lmdb(environment: lmdb.Environment) -> Work:
    def work(keys: list[str]) -> None:
        with environment.begin(buffers=False) as txn:
            get = txn.get
            for key in keys:
                get(key.encode(), b"").decode()

    return work


def of_cdbx(database: cdbx.CDB) -> Work:
    def work(keys: list[str]) -> None:
        get = database.get
        for key in keys:
            get(key).decode()

    return work


def of_many(get_many: Callable[[list[str]], list[str]]) -> Work:
    def work(keys: list[str]) -> None:
        for start in range(0, len(keys), BATCH):
            get_many(keys[start : start + BATCH])

    return work


def build_lmdb(folder: Path, rows: dict[str, str]) -> lmdb.Environment:
    environment = lmdb.open(str(folder / "lmdb"), map_size=1 << 34, sync=False)
    with environment.begin(write=True) as txn:
        for key in sorted(rows):
            txn.put(key.encode(), rows[key].encode(), append=True)
    environment.close()
    return lmdb.open(str(folder / "lmdb"), readonly=True, lock=False)


def build_cdbx(folder: Path, rows: dict[str, str]) -> cdbx.CDB:
    path = str(folder / "rows.cdb")
    with open(path, "w+b") as file:
        maker = cdbx.CDB.make(file)
        for key, value in rows.items():
            maker.add(key, value)
        maker.commit()
    return cdbx.CDB(path, mmap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    rows = {f"key_{n}": f"val_{n}" for n in range(arguments.rows)}
    if not arguments.snapshot.exists():
        nuthatch.build_snapshot(arguments.snapshot, rows)
    keys = list(rows)
    random.Random(1).shuffle(keys)
    with (
        tempfile.TemporaryDirectory() as folder,
        nuthatch.open_snapshot(arguments.snapshot, residency="populated") as snapshot,
    ):
        assert len(snapshot) == len(rows)
        systems: list[tuple[str, str, Work]] = [
            ("nuthatch snapshot[key]", "get", of_snapshot(snapshot)),
            ("nuthatch get", "get", of_get(snapshot.get)),
            ("dict", "get", of_dict(rows)),
            ("dict.get", "get", of_get(rows.get)),
            ("py-lmdb", "get", of_lmdb(build_lmdb(Path(folder), rows))),
            ("cdbx", "get", of_cdbx(build_cdbx(Path(folder), rows))),
            ("nuthatch get_many", "get_many", of_many(snapshot.get_many)),
            ("dict comprehension", "get_many", of_many(lambda keys: [rows[key] for key in keys])),
        ]
        measure(systems, keys, arguments.runs)
    if path := os.environ.get("BENCH_OPEN_FILE"):
        show("nuthatch open_snapshot", "open", measure_opening(path))


def measure_opening(path: str) -> list[float]:
    """Returns the nanoseconds that opening and closing a file took, many times."""
    times = []
    for _ in range(101):
        started = time.perf_counter_ns()
        nuthatch.open_snapshot(path).close()
        times.append(float(time.perf_counter_ns() - started))
    return times


def measure(systems: list[tuple[str, str, Work]], keys: list[str], runs: int) -> None:
    """Prints the times of all systems, which take turns."""
    times: list[list[float]] = [[] for _ in systems]
    for run in range(runs + 1):
        for taken, (_, _, work) in zip(times, systems, strict=True):
            gc.collect()
            started = time.perf_counter_ns()
            work(keys)
            if run > 0:  # The first run warms the caches up.
                taken.append((time.perf_counter_ns() - started) / len(keys))
    for taken, (system, operation, _) in zip(times, systems, strict=True):
        show(system, operation, taken)


def show(system: str, operation: str, taken: list[float]) -> None:
    row: dict[str, object] = {"language": "python", "system": system, "operation": operation}
    row |= {"ns": round(statistics.median(taken), 1), "min_ns": round(min(taken), 1)}
    print(json.dumps({**row, "runs": len(taken)}), flush=True)


if __name__ == "__main__":
    main()
