"""Snapshots in several processes."""

import multiprocessing
import os
from pathlib import Path

import pytest

import nuthatch
from test_processes import in_child

KEYS = [f"key_{n}" for n in range(1000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rows.nut"
    nuthatch.build_snapshot(path, {key: [n] for n, key in enumerate(KEYS)})
    return path


def test_a_child_made_by_fork_reads_the_map_of_its_parent(path: Path) -> None:
    snapshot = nuthatch.open_snapshot(path)
    array, entries = snapshot["key_5"], iter(snapshot)
    next(entries)
    path.unlink()

    def child() -> None:
        os.chdir("/")
        assert snapshot["key_7"].tolist() == array.tolist() == [7] or array.tolist() == [5]
        assert [value.tolist() for value in snapshot.get_many(KEYS)] == [[n] for n in range(1000)]
        assert sum(1 for _ in entries) == 999
        snapshot.verify()
        snapshot.close()
        assert array.tolist() == [5]

    in_child(child)
    assert snapshot["key_7"].tolist() == [7]
    assert sum(1 for _ in entries) == 999


def test_a_child_made_by_fork_watches_by_itself(path: Path) -> None:
    with nuthatch.watch_snapshot(path, interval=0.001) as watch:
        assert len(watch.current) == 1000

        def child() -> None:
            nuthatch.build_snapshot(path, {"one": 1})
            while len(watch.current) != 1:
                watch.refresh()
            nuthatch.build_snapshot(path, {"one": 1, "two": 2})
            while len(watch.current) != 2:  # Its own thread polls.
                pass
            in_child(lambda: watch.status())
            watch.close()
            with pytest.raises(nuthatch.ClosedError):
                watch.refresh()

        in_child(child)
        while len(watch.current) != 2:
            pass


def test_a_child_reads_the_snapshot_of_its_parent_if_the_file_is_gone(path: Path) -> None:
    with nuthatch.watch_snapshot(path, interval=0) as watch:
        assert len(watch.current) == 1000
        path.unlink()

        def child() -> None:
            assert watch.current["key_9"].tolist() == [9]
            with pytest.raises(FileNotFoundError):
                watch.status()

        in_child(child)


def test_a_child_does_not_end_the_build_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "rows.nut"
    writer = nuthatch.SnapshotWriter(path)
    writer.insert("key", 1)

    def child() -> None:
        with pytest.raises(nuthatch.ClosedError):
            writer.insert("child", 1)
        writer.abandon()

    in_child(child)
    writer.insert("other", 2)
    assert writer.finish().entries == 2
    with nuthatch.open_snapshot(path) as snapshot:
        assert dict(snapshot.items()) == {"key": 1, "other": 2}


SHARED: list[nuthatch.Snapshot] = []


def of_parent(key: str) -> list[int]:
    return list(SHARED[0][key].tolist())


def of_pickle(work: tuple[nuthatch.Snapshot, str]) -> list[int]:
    snapshot, key = work
    return list(snapshot[key].tolist())


def test_workers_of_multiprocessing_read_by_fork_and_by_pickle(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:
        SHARED[:] = [snapshot]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(of_parent, KEYS) == [[n] for n in range(1000)]
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            work = [(snapshot, key) for key in KEYS[:20]]
            assert pool.map(of_pickle, work) == [[n] for n in range(20)]
        SHARED.clear()
