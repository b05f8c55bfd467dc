"""Snapshots of data frames: keys by templates, types, nulls, and errors that name the place."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import nuthatch
from conftest import POPULATE

ROWS: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "name": ["Ada", "Grace", None],
    "score": [9.5, None, -1.0],
}
ENTRIES = {
    "user:1.name": "Ada",
    "user:1.score": 9.5,
    "user:2.name": "Grace",
    "user:3.score": -1.0,
}


class Stream:
    """A table of a library that has the Arrow C stream interface and nothing else."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def reader(rows: dict[str, list[Any]]) -> Any:
    """Returns a reader of batches with one row each."""
    table = pyarrow.table(rows)
    return pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(1))


TABLES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
    "reader": reader,
    "stream": lambda rows: Stream(pyarrow.table(rows)),
}


def read(path: Path) -> dict[str | bytes, Any]:
    with nuthatch.open_snapshot(path) as snapshot:
        listed = (numpy.ndarray,)
        return {
            key: value.tolist() if isinstance(value, listed) else value
            for key, value in snapshot.items()
        }


@pytest.mark.parametrize("library", TABLES)
def test_each_column_of_a_row_becomes_an_entry(library: str, tmp_path: Path) -> None:
    path, table = tmp_path / "users.nut", TABLES[library](ROWS)
    summary = nuthatch.write_snapshot(table, path, key="user:{id}.{column}")
    assert read(path) == ENTRIES
    assert (summary.entries, summary.rows) == (4, 4)


@pytest.mark.parametrize("shards", [0, 3])
def test_the_bytes_are_those_of_populate(shards: int, tmp_path: Path) -> None:
    table = pyarrow.table({"id": range(5000), "v": [n / 7 for n in range(5000)]})
    with pyarrow.ipc.new_file(tmp_path / "rows.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    job = f'output = "theirs/a.nut"\nshards = {shards}\n' if shards else 'output = "theirs/a.nut"\n'
    job += '[[source]]\nfrom = "rows.arrow"\nkey = "k{id}"\nvalues = ["v"]\n'
    (tmp_path / "job.toml").write_text(job)
    subprocess.run([POPULATE, tmp_path / "job.toml", "--quiet"], check=True)
    path = tmp_path / "ours/a.nut"
    nuthatch.write_snapshot(table, path, key="k{id}", values=["v"], shards=shards)
    ours = {each.name: each.read_bytes() for each in (tmp_path / "ours").iterdir()}
    assert ours == {each.name: each.read_bytes() for each in (tmp_path / "theirs").iterdir()}
    assert len(ours) == (shards + 1 if shards else 1)


def test_types_of_columns(tmp_path: Path) -> None:
    table = polars.DataFrame(
        {
            "id": ["a"],
            "flag": [True],
            "data": [b"\x00\xff"],
            "vector": polars.Series([[1.0, 2.5]], dtype=polars.List(polars.Float32)),
            "tags": [["x", "y"]],
            "text": ["[1, 2]"],
            "number": [7],
            "json": ['{"theme": "dark", "tabs": [1, 2]}'],
            "kind": polars.Series(["k"], dtype=polars.Categorical),
        }
    )
    types = {"text": "i64[]", "number": "string", "json": "flatten"}
    path = tmp_path / "a.nut"
    nuthatch.write_snapshot(table, path, key="{id}.{column}", types=types)
    assert read(path) == {
        "a.flag": True,
        "a.data": b"\x00\xff",
        "a.vector": [1.0, 2.5],
        "a.tags": ["x", "y"],
        "a.text": [1, 2],
        "a.number": "7",
        "a.json.theme": "dark",
        "a.json.tabs": [1, 2],
        "a.kind": "k",
    }
    with nuthatch.open_snapshot(path) as snapshot:
        assert snapshot["a.vector"].dtype == "float32"


def test_nulls_are_absent_or_empty_or_errors(tmp_path: Path) -> None:
    table, path = pyarrow.table(ROWS), tmp_path / "a.nut"
    nuthatch.write_snapshot(table, path, key="{id}", values=["name"], nulls="empty")
    assert read(path) == {"1": "Ada", "2": "Grace", "3": ""}
    before = path.read_bytes()
    with pytest.raises(nuthatch.ArgumentError, match='row 2, column "name": expected a value'):
        nuthatch.write_snapshot(table, path, key="{id}", values=["name"], nulls="error")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.nut"]


def test_the_index_of_pandas(tmp_path: Path) -> None:
    path = tmp_path / "a.nut"
    table = pandas.DataFrame({"name": ["Ada", "Grace"]}, index=["x", "y"])
    nuthatch.write_snapshot(table.rename_axis("id"), path, key="{id}")
    assert read(path) == {"x": "Ada", "y": "Grace"}
    # An index without a name is no value, unless it is listed.
    nuthatch.write_snapshot(table, path, key="{name}.{column}", values=["__index_level_0__"])
    assert read(path) == {"Ada.__index_level_0__": "x", "Grace.__index_level_0__": "y"}
    nuthatch.write_snapshot(table.assign(id=[1, 2]), path, key="{id}")
    assert read(path) == {"1": "Ada", "2": "Grace"}


def test_duplicates_and_options(tmp_path: Path) -> None:
    table, path = pyarrow.table({"id": [1, 2, 1], "v": ["a", "b", "c"]}), tmp_path / "a.nut"
    with pytest.raises(nuthatch.ArgumentError, match='duplicate key "1": rows 0 and 2') as error:
        nuthatch.write_snapshot(table, path, key="{id}")
    assert error.value.code == "duplicate"
    nuthatch.write_snapshot(
        table, path, key="{id}", on_duplicate="last", metadata={"source": "test"}, compress="zstd"
    )
    assert read(path) == {"1": "c", "2": "b"}
    with nuthatch.open_snapshot(path) as snapshot:
        assert snapshot.metadata() == {"source": b"test"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "{x}"}, 'expected a column "x", found "id", "v"'),
        ({"key": "id"}, "expected the name of a column in braces"),
        ({"key": "{id}", "values": ["w"]}, 'expected a column "w"'),
        ({"key": "{id}", "types": {"v": "int"}}, 'types: column "v": expected a type: bytes'),
        ({"key": "{id}", "types": {"v": "i64"}}, 'row 1, column "v": .*found .*"x"'),
        ({"key": "{id}", "nulls": "skip"}, "nulls: expected absent, empty or error"),
        ({"key": "{id}", "on_duplicate": "all"}, "on_duplicate: expected error, first or last"),
    ],
)
def test_errors_name_the_place(arguments: Any, message: str, tmp_path: Path) -> None:
    table = pyarrow.table({"id": [1, 2], "v": ["1", "x"]})
    with pytest.raises(nuthatch.ArgumentError, match=message):
        nuthatch.write_snapshot(table, tmp_path / "a.nut", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_rows_are_counted_over_batches(tmp_path: Path) -> None:
    rows = {"id": [*range(40_000), None]}
    with pytest.raises(nuthatch.ArgumentError, match=r'row 40000, column "id": .*found NULL'):
        table = pyarrow.table({**rows, "v": [1] * 40_001})
        nuthatch.write_snapshot(table, tmp_path / "a.nut", key="{id}")
    with pytest.raises(nuthatch.ArgumentError, match="row 1: key length in bytes: expected at"):
        table = pyarrow.table({"id": ["a", "b" * 70_000], "v": [1, 2]})
        nuthatch.write_snapshot(table, tmp_path / "a.nut", key="{id}")


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.nut"
    with pytest.raises(TypeError, match=r"Arrow C stream interface, .*, found dict"):
        nuthatch.write_snapshot({"a": 1}, path, key="{id}")
    with pytest.raises(nuthatch.ArgumentError, match="table: expected rows with columns"):
        nuthatch.write_snapshot(polars.Series([1, 2]), path, key="{id}")


def test_an_error_of_the_stream_is_reported(tmp_path: Path) -> None:
    def batches() -> Iterator[pyarrow.RecordBatch]:
        yield pyarrow.record_batch({"id": [1], "v": [2]})
        raise ValueError("the source has failed")

    schema = pyarrow.schema({"id": pyarrow.int64(), "v": pyarrow.int64()})
    table = pyarrow.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(nuthatch.ArgumentError, match=r"row 1: .*the source has failed"):
        nuthatch.write_snapshot(table, tmp_path / "a.nut", key="{id}")
    assert list(tmp_path.iterdir()) == []


def test_no_library_is_imported(tmp_path: Path) -> None:
    program = """
import json, sys
import nuthatch
import polars
nuthatch.write_snapshot(polars.DataFrame({"id": [1], "v": ["x"]}), sys.argv[1], key="{id}")
print(json.dumps([name for name in ("pandas", "pyarrow", "pyspark") if name in sys.modules]))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "a.nut"], capture_output=True, check=True
    )
    assert json.loads(ran.stdout) == []
