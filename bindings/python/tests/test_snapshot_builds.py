"""Building of snapshots from rows, mappings and tables."""

import array
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import nuthatch
from conftest import PROGRAM
from snapshot_cases import VECTORS, comparable, document, key


def value_of(form: Any) -> Any:
    """Converts a value of a vector from its JSON form into one for the builder."""
    kind, compared = comparable(form)
    match kind:
        case "f64":
            return float(numpy.frombuffer(compared)[0])
        case "list of f64":
            return numpy.frombuffer(compared)
        case "list of f32":
            return numpy.frombuffer(compared, dtype="float32")
        case "empty list":
            return []
    return compared if kind == "bytes" else form


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("types", {}),
        ("seed", {}),
        ("keys", {}),
        ("shared", {}),
        ("long-values", {}),
        ("entries-20000", {"threads": 1, "memory": 16 << 20}),
        ("zstd", {"compress": "zstd"}),
    ],
)
def test_the_bytes_are_those_of_every_other_writer(name: str, options: Any, tmp_path: Path) -> None:
    expected = VECTORS / f"v1/{name}.nut"
    described = document(f"v1/{name}.nut")
    rows = [(key(row["key"]), value_of(row["value"])) for row in described["entries"]]
    seed = described["stats"]["seed"]
    nuthatch.build_snapshot(tmp_path / "new.nut", reversed(rows), seed=seed, **options)
    assert (tmp_path / "new.nut").read_bytes() == expected.read_bytes()


def test_a_set_is_built_and_its_bytes_are_those_of_the_vector(tmp_path: Path) -> None:
    expected = document("v1/set-3.nut")
    rows = [(key(row["key"]), value_of(row["value"])) for row in expected["entries"]]
    with nuthatch.open_snapshot(VECTORS / "v1/set-3.nut") as original:
        metadata = original.metadata()
    seed = expected["stats"]["seed"]
    nuthatch.build_snapshot(tmp_path / "new.nut", rows, shards=3, seed=seed, metadata=metadata)
    assert (tmp_path / "new.nut").read_bytes() == (VECTORS / "v1/set-3.nut").read_bytes()


def test_the_bytes_are_those_of_the_command(tmp_path: Path) -> None:
    rows = {f"key {n}": [n / 4, n] if n % 2 else f"välue {n % 50} {'x' * 40}" for n in range(5000)}
    rows = {key: [float(x) for x in v] if isinstance(v, list) else v for key, v in rows.items()}
    lines = "".join(json.dumps({"key": k, "value": v}) + "\n" for k, v in rows.items())
    (tmp_path / "rows.jsonl").write_text(lines)
    command = [PROGRAM, "build", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "a.nut")]
    subprocess.run([*command, "--quiet", "--meta", "source=test"], check=True, timeout=60)
    nuthatch.build_snapshot(tmp_path / "b.nut", rows, metadata={"source": "test"})
    assert (tmp_path / "a.nut").read_bytes() == (tmp_path / "b.nut").read_bytes()


def read(path: Path) -> dict[Any, Any]:
    with nuthatch.open_snapshot(path) as snapshot:
        return dict(snapshot.items())


def types(path: Path) -> dict[str, int]:
    with nuthatch.open_snapshot(path) as snapshot:
        return snapshot.stats().entries_by_type


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new.nut"


def test_types_follow_from_classes(path: Path) -> None:
    for value, expected in (
        (True, "bool"),
        (1, "i64"),
        (1.0, "f64"),
        ("1", "string"),
        (b"1", "bytes"),
        (bytearray(b"1"), "bytes"),
        (memoryview(b"123")[::2], "bytes"),
        ((1, 2), "list of i64"),
        ([1.0], "list of f64"),
        (["1"], "list of string"),
        ([], "empty list"),
        ((), "empty list"),
        (numpy.array([], dtype="float32"), "empty list"),
        (numpy.int32(1), "i64"),
        (numpy.uint64(1), "i64"),
        (numpy.float32(1), "f64"),
        (numpy.float64(1), "f64"),
        (numpy.bool_(True), "bool"),
        (numpy.str_("1"), "string"),
        (numpy.array(5), "i64"),
        (numpy.array([1, 2]), "list of i64"),
        (numpy.array([1, 2], dtype="uint8"), "list of i64"),
        (numpy.array([1.0, 2.0]), "list of f64"),
        (numpy.array([1.0, 2.0, 3.0], dtype="float32")[::2], "list of f32"),
        (array.array("f", [1, 2]), "list of f32"),
        (array.array("i", [1, 2]), "list of i64"),
    ):
        nuthatch.build_snapshot(path, {"key": value})
        assert types(path) == {expected: 1}, value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "found None"),
        (1 << 63, "expected an int of 64 bits, found an int outside"),
        (numpy.uint64(1 << 63), "found an int outside"),
        ([1, 2.0], "expected a list of elements of class int of 64 bits, found float as element 1"),
        ([1.0, 2], "class float, found int as element 1"),
        ([True, False], "found a list of bool"),
        ([1, True], "found bool as element 1"),
        (["a", b"b"], "class str, found bytes as element 1"),
        (["a", "\ud800"], "found str as element 1"),
        ("\ud800", "found an unpaired surrogate"),
        ([None], "found a list of None"),
        ([1, 1 << 63], "found int as element 1"),
        ([[1]], "found a list of list"),
        ({"a": 1}, "found dict"),
        ({1, 2}, "found set"),
        (1j, "found complex"),
        (numpy.array([[1, 2]]), "expected an array of one dimension, found an array of 2"),
        (numpy.array(["a"]), "found ndarray"),
        (numpy.array([True]), "found ndarray"),
        (numpy.array([1], dtype=">i8"), "found one in big-endian byte order"),
        (numpy.array([1], dtype=">u2"), "found one in big-endian byte order"),
        (numpy.array([1], dtype=">f4"), "found one in big-endian byte order"),
        (numpy.datetime64("2026-11-24"), "found date"),
        (pandas.NA, "found NAType"),
    ],
)
def test_other_values_are_errors_that_name_the_row(path: Path, value: Any, found: str) -> None:
    with pytest.raises(nuthatch.ArgumentError) as error:
        nuthatch.build_snapshot(path, [("first", 1), ("key", value)])
    assert str(error.value).startswith('row 1, key "key": value: ')
    assert found in str(error.value)
    assert os.listdir(path.parent) == []


def test_keys_that_are_invalid_are_errors_that_name_the_row(path: Path) -> None:
    for wrong, message in (
        (1, "row 1: key: expected str or bytes, found int"),
        ("\ud800", "row 1: key: expected text, found an unpaired surrogate"),
    ):
        with pytest.raises(nuthatch.ArgumentError, match=message):
            nuthatch.build_snapshot(path, [("first", 1), (wrong, 1)])
    with pytest.raises(nuthatch.ArgumentError, match=r"row 1: expected a pair .* found str"):
        nuthatch.build_snapshot(path, [("first", 1), "second"])
    with pytest.raises(nuthatch.ArgumentError, match="at most 65535, found 65536") as limit:
        nuthatch.build_snapshot(path, {"k" * 65_536: 1})
    assert limit.value.code == "limit"
    assert limit.value.__notes__[0].startswith('row 0, key "kkk')


def test_duplicates(path: Path) -> None:
    rows = [("a", 1), ("b", 2), ("a", 3)]
    with pytest.raises(nuthatch.ArgumentError, match='duplicate key "a": rows 0 and 2') as error:
        nuthatch.build_snapshot(path, rows)
    assert error.value.code == "duplicate"
    assert not path.exists()
    nuthatch.build_snapshot(path, rows, on_duplicate="first")
    assert read(path) == {"a": 1, "b": 2}
    summary = nuthatch.build_snapshot(path, rows, on_duplicate="last")
    assert read(path) == {"a": 3, "b": 2}
    assert (summary.entries, summary.rows, summary.file_bytes) == (2, 3, path.stat().st_size)


def test_a_type_can_be_requested(path: Path) -> None:
    rows = {"a": [1.0, 2], "b": numpy.array([0.1]), "c": []}
    nuthatch.build_snapshot(path, rows, value_type="list of f32")
    assert types(path) == {"list of f32": 2, "empty list": 1}
    nuthatch.build_snapshot(path, {"a": 1, "b": 2.5}, value_type="f64")
    assert read(path) == {"a": 1.0, "b": 2.5}
    with pytest.raises(nuthatch.ArgumentError, match="value of type i64, found one of type f64"):
        nuthatch.build_snapshot(path, {"a": 2.0}, value_type="i64")
    with pytest.raises(nuthatch.ArgumentError, match="value of type f64, found one of type i64"):
        nuthatch.build_snapshot(path, {"a": (1 << 53) + 1}, value_type="f64")
    with pytest.raises(nuthatch.ArgumentError, match="value_type: expected a type such as"):
        nuthatch.build_snapshot(path, {"a": 2.0}, value_type="float")


@pytest.mark.parametrize("value_type", ["list of f64", "list of f32"])
def test_an_int_that_is_no_float_is_refused_in_a_list(path: Path, value_type: str) -> None:
    nuthatch.build_snapshot(path, {"a": [1 << 53, -(1 << 53)]}, value_type=value_type)
    assert list(read(path)["a"]) == [float(1 << 53), -float(1 << 53)]
    for number in ((1 << 53) + 1, 1 << 63, 1 << 2000, True):
        with pytest.raises(nuthatch.ArgumentError, match="int from -2\\^53 to 2\\^53, found"):
            nuthatch.build_snapshot(path, {"a": [0.5, number]}, value_type=value_type)


def test_a_finite_float_beyond_32_bits_is_refused_in_a_list_of_f32(path: Path) -> None:
    largest = float(numpy.finfo("float32").max)
    infinite = [math.inf, -math.inf]
    kept = [largest, -largest, 1e-300, *infinite]
    for value in (kept, tuple(kept), numpy.array(kept)):
        nuthatch.build_snapshot(path, {"a": value, "b": [math.nan]}, value_type="list of f32")
        assert list(read(path)["a"]) == [largest, -largest, 0, *infinite]
    before = path.read_bytes()
    for number, found in ((1e300, "1e300"), (-1e39, "-1e39"), (3.4028236e38, "3.4028236e38")):
        for value in ([0.5, number], numpy.array([0.5, number])):
            with pytest.raises(nuthatch.ArgumentError) as error:
                nuthatch.build_snapshot(path, {"a": value}, value_type="list of f32")
            assert str(error.value).startswith(
                'row 0, key "a": value: expected floats in the range of 32 bits, '
            )
            assert str(error.value).endswith(f"found {found} as element 1")
    table = pandas.DataFrame({"key": ["a"], "value": [[1e300]]})
    with pytest.raises(nuthatch.ArgumentError, match="found 1e300 as element 0"):
        nuthatch.build_snapshot(path, table, value_type="list of f32")
    assert path.read_bytes() == before


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
def test_a_masked_array_is_refused_until_it_is_filled(path: Path, dtype: str) -> None:
    values = numpy.array([1, 2, 3], dtype=dtype)
    masked = numpy.ma.MaskedArray(values, mask=[False, True, False])
    for value in (masked, numpy.ma.MaskedArray(values), masked[1:2].reshape(()), numpy.ma.masked):
        with pytest.raises(nuthatch.ArgumentError, match=r"array\.filled\(0\).*, found Masked"):
            nuthatch.build_snapshot(path, {"a": value})
    nuthatch.build_snapshot(path, {"a": masked.filled(0), "b": masked[0]})
    assert list(read(path)["a"]) == [1, 0, 3]
    assert read(path)["b"] == 1


def test_options_are_checked(path: Path) -> None:
    for options, message in (
        ({"on_duplicate": "drop"}, "on_duplicate: expected error, first or last"),
        ({"compress": "gzip"}, "compress: expected zstd"),
        ({"level": 3}, "level: expected compress"),
        ({"compress": "zstd", "level": 23}, "level: expected 1 to 22, found 23"),
        ({"shards": 70_000}, "shards: at most 65536, found 70000"),
    ):
        with pytest.raises(nuthatch.ArgumentError, match=message):
            nuthatch.build_snapshot(path, {}, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'threat'"):
        nuthatch.SnapshotWriter(path, threat=1)  # type: ignore[call-arg]


def test_a_writer_finishes_at_the_end_of_its_block_and_writes_nothing_after_an_exception(
    path: Path,
) -> None:
    with nuthatch.SnapshotWriter(path) as writer:
        writer.insert("a", 1)
        writer.insert(b"\xff", [1], value_type="list of f32")
        writer.insert_many({"b": 2})
        writer.insert_many([("c", 3), ["d", 4]])
        writer.set_metadata("source", "test")
        assert not path.exists()
    assert len(read(path)) == 5
    with pytest.raises(nuthatch.ClosedError, match="the writer is closed"):
        writer.insert("e", 5)
    with pytest.raises(nuthatch.ClosedError):
        writer.finish()
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), nuthatch.SnapshotWriter(path) as writer:
        writer.insert("a", 2)
        raise ZeroDivisionError
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_source_that_raises_leaves_nothing_behind(path: Path) -> None:
    def rows() -> Any:
        yield "a", 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nuthatch.build_snapshot(path, rows())
    assert os.listdir(path.parent) == []


TABLE: dict[str, list[Any]] = {
    "id": [f"key {n}" for n in range(70_000)],
    "name": [f"name {n}" for n in range(70_000)],
    "number": list(range(70_000)),
}


@pytest.mark.parametrize("library", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_columns_of_tables_become_rows(path: Path, library: Any) -> None:
    table = library(TABLE)
    nuthatch.build_snapshot(path, table, value="number")
    assert read(path) == dict(zip(TABLE["id"], TABLE["number"], strict=True))
    nuthatch.build_snapshot(path, table, key="name", value="id")
    assert read(path) == dict(zip(TABLE["name"], TABLE["id"], strict=True))
    with pytest.raises(nuthatch.ArgumentError, match="value: expected the name of one column, fo"):
        nuthatch.build_snapshot(path, table)
    with pytest.raises(nuthatch.ArgumentError, match="found 'none', of 'id', 'name', 'number'"):
        nuthatch.build_snapshot(path, table, key="none")
    with pytest.raises(nuthatch.ArgumentError, match="row 0: key: expected str or bytes, found i"):
        nuthatch.build_snapshot(path, table, key="number", value="id")
    missing = library({"key": ["a", "b"], "value": ["x", None]})
    with pytest.raises(nuthatch.ArgumentError, match=r'row 1, key "b": value: .* found None'):
        nuthatch.build_snapshot(path, missing)
    with pytest.raises(nuthatch.ArgumentError, match="expected a table with columns, found dict"):
        nuthatch.build_snapshot(path, {}, key="a")


def test_vectors_of_tables_keep_their_type(path: Path) -> None:
    vectors = [[0.5, 1.5], [2.5, 3.5]]
    arrow = pyarrow.table({"key": ["a", "b"]})
    for kind in (
        pyarrow.list_(pyarrow.float32()),
        pyarrow.large_list(pyarrow.float32()),
        pyarrow.list_(pyarrow.float32(), 2),
    ):
        table = arrow.append_column("value", pyarrow.array(vectors, kind))
        for source in (table, table.to_batches()[0], polars.from_arrow(table), table.to_pandas()):
            nuthatch.build_snapshot(path, source)
            assert types(path) == {"list of f32": 2}
    table = arrow.append_column("value", pyarrow.array(vectors))
    for source in (table, polars.from_arrow(table), table.to_pandas()):
        nuthatch.build_snapshot(path, source)
        assert types(path) == {"list of f64": 2}


def test_nan_is_a_value_in_a_column_of_floats_only(path: Path) -> None:
    nuthatch.build_snapshot(path, pandas.DataFrame({"key": ["a"], "value": [math.nan]}))
    assert math.isnan(read(path)["a"])
    for values in (["x", math.nan], pandas.array([1, None], dtype="Int64")):
        table = pandas.DataFrame({"key": ["a", "b"], "value": values})
        with pytest.raises(nuthatch.ArgumentError, match=r"row 1, .* found None"):
            nuthatch.build_snapshot(path, table)


def test_a_table_of_another_library_is_read_by_the_arrow_interface(path: Path) -> None:
    class Table:
        """Has the interface, as tables of DuckDB have."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pyarrow.table({"k": ["a"], "v": [1]}).__arrow_c_stream__(requested_schema)

    nuthatch.build_snapshot(path, Table())
    assert read(path) == {"a": 1}
