"""Snapshots that are closed, truncated or replaced while they are read."""

import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import nuthatch

KEYS = [f"key_{n}" for n in range(5000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rows.nut"
    rows = {key: [n, n + 1] if n % 2 else f"value {n}" for n, key in enumerate(KEYS)}
    nuthatch.build_snapshot(path, rows)
    return path


def test_every_call_of_a_closed_snapshot_is_an_error(path: Path) -> None:
    snapshot = nuthatch.open_snapshot(path)
    entries, views = iter(snapshot), (snapshot.items(), snapshot.values())
    next(entries)
    snapshot.close()
    snapshot.close()
    assert snapshot.is_closed
    assert repr(snapshot) == "<nuthatch.Snapshot, closed>"
    calls: list[Callable[[], object]] = [
        lambda: snapshot["key_0"],
        lambda: snapshot.get("key_0"),
        lambda: "key_0" in snapshot,
        lambda: len(snapshot),
        lambda: list(snapshot),
        lambda: next(entries),
        lambda: list(views[0]),
        lambda: list(views[1]),
        lambda: snapshot.get_many(KEYS),
        lambda: snapshot.get_string("key_0"),
        lambda: snapshot.value_type("key_0"),
        snapshot.keys,
        snapshot.stats,
        snapshot.metadata,
        snapshot.verify,
        snapshot.check_readable,
        lambda: snapshot.path,
        lambda: pickle.dumps(snapshot),
    ]
    for call in calls:
        with pytest.raises(nuthatch.ClosedError, match="the snapshot is closed"):
            call()


def test_closing_while_threads_read_is_an_error_in_them_and_arrays_stay(path: Path) -> None:
    for round_number in range(20):
        snapshot = nuthatch.open_snapshot(path)
        started = threading.Barrier(5)
        kept: list[tuple[int, numpy.ndarray]] = []
        failures: list[BaseException] = []

        def read(
            seed: int,
            snapshot: nuthatch.Snapshot = snapshot,
            started: threading.Barrier = started,
            kept: list[tuple[int, numpy.ndarray]] = kept,
            failures: list[BaseException] = failures,
        ) -> None:
            order = random.Random(seed).sample(range(1, len(KEYS), 2), 2000)
            started.wait()
            try:
                while True:
                    for n in order:
                        kept.append((n, snapshot[KEYS[n]]))
                    snapshot.get_many(KEYS)
                    sum(1 for _ in snapshot.items())
                    snapshot.verify()
                    del kept[1000:]
            except nuthatch.ClosedError:
                pass
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read, args=(round_number * 4 + n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        snapshot.get_many(KEYS)
        snapshot.close()
        for thread in threads:
            thread.join()
        assert failures == []
        assert all(array.tolist() == [n, n + 1] for n, array in kept)


def test_an_iterator_of_several_threads_gives_each_entry_once(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:
        entries, found = iter(snapshot), list[str | bytes]()
        threads = [threading.Thread(target=lambda: found.extend(entries)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, found)) == sorted(KEYS)


TRUNCATED = """
import os, sys, nuthatch
path, keys = sys.argv[1], [f"key_{n}" for n in range(5000)]
snapshot = nuthatch.open_snapshot(path)
array = snapshot["key_4999"]
snapshot.check_readable()
os.truncate(path, 4096)
codes = set()
for key in keys:
    for get in (snapshot.get, snapshot.get_string, snapshot.__contains__, snapshot.value_type):
        try:
            get(key)
        except nuthatch.DamagedError as error:
            codes.add(error.code)
            assert "truncated" in str(error), error
for call in (
    snapshot.check_readable,
    snapshot.verify,
    lambda: snapshot.get_many(keys),
    lambda: snapshot.get_many(keys, out="arrow", value_type="string"),
    lambda: list(snapshot.items()),
):
    try:
        call()
        print("no error", call)
    except nuthatch.DamagedError as error:
        codes.add(error.code)
array.tolist()
print(codes)
"""


def test_a_truncated_file_is_an_error_and_does_not_end_the_process(path: Path) -> None:
    run = [sys.executable, "-c", TRUNCATED, str(path)]
    ran = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "{'unreadable'}\n"


def test_a_watch_serves_the_newest_good_file_and_old_ones_stay_readable(path: Path) -> None:
    with nuthatch.watch_snapshot(path, interval=0) as watch:
        old = watch.current
        assert watch.current is old
        assert not watch.refresh()
        nuthatch.build_snapshot(path, {"key_1": [7, 8]})
        assert watch.current is old
        assert watch.refresh()
        new = watch.current
        assert new is not old
        assert (new["key_1"].tolist(), old["key_1"].tolist()) == ([7, 8], [1, 2])
        path.with_name("bad").write_bytes(b"no snapshot")
        path.with_name("bad").rename(path)
        assert not watch.refresh()
        status = watch.status()
        assert (status.path, status.switched, status.rejected) == (path, 1, 1)
        assert "not a snapshot" in (status.error or "")
        assert watch.current is new
        # The snapshot of a watch is shared.
        new.close()
        assert watch.current["key_1"].tolist() == [7, 8]
        with pytest.raises(nuthatch.ArgumentError, match="pickle the watch"):
            pickle.dumps(new)
    assert new["key_1"].tolist() == [7, 8], "after the watch is closed"
    for call in (lambda: watch.current, watch.refresh, watch.status):
        with pytest.raises(nuthatch.ClosedError, match="the watch is closed"):
            call()


def test_a_watch_polls_by_itself(path: Path) -> None:
    with nuthatch.watch_snapshot(path, interval=0.001, verify=True) as watch:
        nuthatch.build_snapshot(path, {"key": "new"})
        # It ends as soon as the watch has switched; pytest's time limit is the only other end.
        while len(watch.current) != 1:
            pass
        assert watch.status().switched == 1
        with pickle.loads(pickle.dumps(watch)) as again:
            assert again.current["key"] == "new"
            assert again.path == path


def test_maps_of_replaced_files_are_released(path: Path) -> None:
    def maps() -> int:
        return Path("/proc/self/maps").read_text().count(str(path))

    assert maps() == 0
    with nuthatch.watch_snapshot(path, interval=0) as watch:
        array = watch.current["key_1"]
        for number in range(10):
            nuthatch.build_snapshot(path, {"key_1": [number]})
            assert watch.refresh()
            assert watch.current["key_1"].tolist() == [number]
            watch.refresh()
            # That of the array, and the newest.
            assert maps() == 2
        del array
        watch.refresh()
        assert maps() == 1
    del watch
    assert maps() == 0
    snapshot = nuthatch.open_snapshot(path)
    assert maps() == 1
    snapshot.close()
    assert maps() == 0


def test_threads_read_while_a_watch_switches(path: Path) -> None:
    with nuthatch.watch_snapshot(path, interval=0) as watch:
        is_done = threading.Event()
        failures: list[BaseException] = []

        def read() -> None:
            try:
                while not is_done.is_set():
                    snapshot = watch.current
                    count = len(snapshot)
                    assert len(snapshot.get_many(list(snapshot))) == count
                    assert snapshot["key_1"].tolist()[1:] == ([2] if count == 5000 else [count])
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for count in range(1, 60):
            rows: dict[str, object] = {f"other {n}": n for n in range(count - 1)}
            nuthatch.build_snapshot(path, rows | {"key_1": [0, count]})
            assert watch.refresh()
        is_done.set()
        for thread in threads:
            thread.join()
        assert failures == []
