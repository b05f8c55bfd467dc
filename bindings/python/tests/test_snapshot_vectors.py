"""The shared test vectors of snapshots, as the readers of all languages pass them."""

import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import nuthatch
from snapshot_cases import (
    SHARDS,
    VECTORS,
    comparable,
    compared,
    damaged,
    document,
    good_files,
    key,
    passed,
    publish,
    table,
)

TYPED = {
    "bytes": "get_bytes",
    "string": "get_string",
    "bool": "get_bool",
    "i64": "get_i64",
    "f64": "get_f64",
    "list of i64": "get_i64_list",
    "list of f64": "get_f64_list",
    "list of f32": "get_f32_list",
    "list of string": "get_string_list",
}
BAD = table("bad/cases")


def check_entries(snapshot: nuthatch.Snapshot, expected: Any) -> None:
    """Compares the entries of a snapshot with its document."""
    entries = [(key(entry["key"]), comparable(entry["value"])) for entry in expected["entries"]]
    assert [(each, compared(value)) for each, value in snapshot.items()] == entries
    assert list(snapshot) == [each for each, _ in entries]
    assert [compared(value) for value in snapshot.values()] == [value for _, value in entries]
    assert len(snapshot) == len(entries)
    assert [compared(value) for value in snapshot.get_many([each for each, _ in entries])] == [
        value for _, value in entries
    ]
    for (each, value), entry in zip(entries, expected["entries"], strict=True):
        assert compared(snapshot[each]) == value
        assert each in snapshot
        assert snapshot.value_type(each) == entry["type"] == value[0]
        if isinstance(each, str):
            assert compared(snapshot[each.encode()]) == value
    for absent in map(key, expected["absent"]):
        assert absent not in snapshot
        assert snapshot.get(absent, "default") == "default"
        assert snapshot.get_many([absent]) == [None]
    snapshot.verify()


def check_header(snapshot: nuthatch.Snapshot, expected: Any) -> None:
    """Compares the statistics and the metadata of a snapshot with its document."""
    stats = snapshot.stats()
    for name, value in expected["stats"].items():
        assert getattr(stats, name) == value, name
    metadata = {name: comparable(value)[1] for name, value in expected.get("metadata", {}).items()}
    metadata = {name: v.encode() if isinstance(v, str) else v for name, v in metadata.items()}
    assert snapshot.metadata() == metadata
    assert stats.shards == expected.get("shards", 0)


@pytest.mark.parametrize("file", good_files())
def test_a_good_file_has_the_expected_entries(file: str) -> None:
    with nuthatch.open_snapshot(VECTORS / file) as snapshot:
        check_entries(snapshot, document(file))
        check_header(snapshot, document(file))
    with nuthatch.open_snapshot(VECTORS / file, residency="huge-pages") as snapshot:
        check_entries(snapshot, document(file))
    passed(file)


def failure(call: Callable[[], object]) -> tuple[str, int | None] | None:
    """Returns the code and the offset of the error of a call; ``None`` if it succeeds."""
    try:
        call()
    except nuthatch.Error as error:
        assert error.code in ("corrupt", "unsupported", "not-a-snapshot"), error
        assert str(error)
        assert error.path is not None
        assert error.expected is not None
        assert error.found is not None
        return error.code, error.offset
    return None


def read_all(snapshot: nuthatch.Snapshot, keys: list[str | bytes]) -> None:
    """Looks all keys up and iterates; any of it may find the damage."""
    damage = {each for each in keys if failure(partial(snapshot.get, each))}
    entries = iter(snapshot.items())
    is_damaged = False
    while True:
        try:
            next(entries)
        except StopIteration:
            break
        except nuthatch.DamagedError as error:
            assert error.code == "corrupt"
            is_damaged = True
    assert is_damaged or not damage
    for form in ("list", "arrow"):
        try:
            snapshot.get_many(keys, out=form)
        except nuthatch.WrongTypeError:
            pass
        except nuthatch.DamagedError as error:
            assert error.code == "corrupt"


@pytest.mark.parametrize("case", BAD, ids=[f"{case['file']}: {case['name']}" for case in BAD])
def test_a_damaged_file_has_the_expected_error(case: Any, tmp_path: Path) -> None:
    path = tmp_path / "case.nut"
    for shard in SHARDS:
        os.symlink(shard, tmp_path / shard.name)
    damaged(case, path)
    expected = document(case.get("of", case["file"]))

    def error_of(step: str) -> tuple[str, int] | None:
        return (case[step]["code"], case[step]["offset"]) if step in case else None

    assert failure(lambda: nuthatch.open_snapshot(path)) == error_of("open")
    if "open" not in case:
        with nuthatch.open_snapshot(path) as snapshot:
            assert failure(snapshot.verify) == error_of("verify")
            if "verify" not in case:
                check_entries(snapshot, expected)
            else:
                read_all(snapshot, [key(entry["key"]) for entry in expected["entries"]])
            if "get" in case:
                wanted = key(case["get"]["key"])
                found = failure(lambda: snapshot.get(wanted))
                if case["get"]["answer"] == "absent":
                    assert found is None
                    assert wanted not in snapshot
                else:
                    assert found is not None
                    assert found[0] == "corrupt"
    passed(f"{case['file']}: {case['name']}")


def test_typed_lookups_return_values_or_the_type_that_was_found() -> None:
    for case in table("typed"):
        with nuthatch.open_snapshot(VECTORS / case["file"]) as snapshot:
            get = getattr(snapshot, TYPED[case["as"]])
            wanted = key(case["key"])
            if "found" in case:
                with pytest.raises(nuthatch.WrongTypeError) as error:
                    get(wanted)
                found = (error.value.code, error.value.expected, error.value.found)
                assert found == ("wrong-type", case["as"], case["found"]), case["name"]
                with pytest.raises(nuthatch.WrongTypeError):
                    snapshot.get_many([wanted], value_type=case["as"])
            elif case.get("absent"):
                assert get(wanted) is None, case["name"]
                assert get(wanted, 1) == 1
            else:
                value = get(wanted)
                assert compared(value) == comparable(case["value"]), case["name"]
                if case["as"] in ("list of i64", "list of f64", "list of f32"):
                    assert value.dtype.name == {"i": "int64"}.get(
                        case["as"][8], f"float{case['as'][9:]}"
                    )
        passed(case["name"])


def test_a_watch_follows_the_steps_of_each_case(tmp_path: Path) -> None:
    for number, case in enumerate(table("watch")):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "watched.nut"
        watch = None
        for step in case["steps"]:
            if "publish" in step:
                publish(VECTORS / step["publish"], path)
            elif "remove" in step:
                path.unlink()
            if watch is None:
                watch = nuthatch.watch_snapshot(path, interval=0, verify=case["verify"])
            else:
                switched = watch.status().switched
                assert watch.refresh() == (step["switched"] > switched)
            status = watch.status()
            found = (status.switched, status.rejected, status.error is not None)
            assert found == (step["switched"], step["rejected"], step["error"]), case["name"]
            assert len(watch.current) == step["entries"]
            with nuthatch.open_snapshot(VECTORS / step["current"]) as expected:
                assert watch.current.stats().entries_by_type == expected.stats().entries_by_type
                assert list(watch.current) == list(expected)
        assert watch is not None
        watch.close()
        passed(case["name"])


def test_a_sparse_file_beyond_4_gib_is_read(tmp_path: Path) -> None:
    case = table("large")
    path = tmp_path / "large.nut"
    with path.open("wb") as file:
        file.truncate(case["length"])
        for patch in case["patch"]:
            file.seek(patch["at"])
            file.write(bytes.fromhex(patch["hex"]))
    with nuthatch.open_snapshot(path) as snapshot:
        entries = [(key(entry["key"]), comparable(entry["value"])) for entry in case["entries"]]
        assert [(each, compared(value)) for each, value in snapshot.items()] == entries
        for each, value in entries:
            assert compared(snapshot[each]) == value
        for absent in map(key, case["absent"]):
            assert absent not in snapshot
    path.unlink()
    passed(case["name"])


def test_hashes_of_keys_are_those_of_the_table(tmp_path: Path) -> None:
    """The fingerprint of a key in the index has 15 bits of its hash, with each seed."""
    path = tmp_path / "one.nut"
    for case in table("hashes"):
        seed, expected, wanted = int(case["seed"], 16), int(case["hash"], 16), key(case["key"])
        nuthatch.build_snapshot(path, {wanted: case["name"]}, seed=seed)
        data = path.read_bytes()
        (index,) = struct.unpack_from("<Q", data, 88)
        lines = [struct.unpack_from("<14H", data, at) for at in range(index, len(data) - 64, 64)]
        assert lines[0][0] == expected & 0x7FFF | 0x8000, case["name"]
        with nuthatch.open_snapshot(path) as snapshot:
            assert snapshot[wanted] == case["name"]
        passed(case["name"])
