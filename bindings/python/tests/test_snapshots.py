"""Snapshots: a mapping of keys to values in memory."""

import collections.abc
import gc
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy
import polars
import pyarrow
import pytest

import nuthatch

ROWS: dict[str | bytes, object] = {
    "name": "Ada",
    "age": 36,
    "score": 0.5,
    "active": True,
    "raw": b"\x00\xff",
    "tags": ["admin", "früh"],
    "counts": [1, 2, 3],
    "weights": [0.25, -0.5],
    "vector": numpy.array([1.5, 2.5, 3.5], dtype="float32"),
    "nothing": [],
    b"\xff": "a key that is not text",
    "größe": "a key that is not ASCII",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Builds a snapshot with values of all types."""
    path = tmp_path / "rows.nut"
    nuthatch.build_snapshot(path, ROWS, metadata={"source": "test", "raw": b"\xff"})
    return path


def test_it_is_a_mapping(path: Path) -> None:
    snapshot = nuthatch.open_snapshot(path)
    assert isinstance(snapshot, collections.abc.Mapping)
    assert len(snapshot) == len(ROWS)
    assert set(snapshot) == set(snapshot.keys()) == set(ROWS)
    assert snapshot["name"] == snapshot[b"name"] == snapshot.get("name") == "Ada"
    assert snapshot.get("missing") is None
    assert snapshot.get("missing", 1) == 1
    assert snapshot.get(key="name", default=1) == "Ada"
    assert "age" in snapshot
    assert "ag" not in snapshot
    with pytest.raises(KeyError) as error:
        snapshot["missing"]
    assert error.value.args == ("missing",)
    assert dict(snapshot.items())["tags"] == ["admin", "früh"]
    assert len(snapshot.items()) == len(snapshot.values()) == len(snapshot.keys()) == len(ROWS)
    assert ("age", 36) in snapshot.items()
    match snapshot:
        case {"name": str(name), "age": 36}:
            assert name == "Ada"
        case _:
            raise AssertionError
    assert snapshot.path == path
    assert repr(snapshot) == f"<nuthatch.Snapshot of 12 entries in {path}>"
    assert snapshot.metadata() == {"raw": b"\xff", "source": b"test"}


def test_keys_of_other_classes_are_refused(path: Path) -> None:
    class Text(str):
        """A subclass, as enumerations of text are."""

    with nuthatch.open_snapshot(path) as snapshot:
        assert snapshot[Text("name")] == "Ada"
        for use in (
            lambda: snapshot[1],  # type: ignore[index]
            lambda: snapshot.get(bytearray(b"name")),  # type: ignore[call-overload]
            lambda: None in snapshot,
            lambda: snapshot.get_many([None]),  # type: ignore[list-item]
        ):
            with pytest.raises(TypeError, match="key: expected str or bytes, found"):
                use()
        with pytest.raises(TypeError, match="keys: expected an iterable of keys, found str"):
            snapshot.get_many("name")


def test_text_without_a_utf_8_form_is_the_key_of_no_entry(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:
        assert "\ud800" not in snapshot
        assert snapshot.get("\ud800", 1) == 1
        assert snapshot.get_many(["\ud800", "age"]) == [None, 36]
        assert snapshot.get_i64("\ud800") is None


def test_lists_of_numbers_are_arrays_in_the_map_that_outlive_the_snapshot(path: Path) -> None:
    snapshot = nuthatch.open_snapshot(path)
    arrays = [snapshot[key] for key in ("counts", "weights", "vector")]
    assert [array.dtype.name for array in arrays] == ["int64", "float64", "float32"]
    again = snapshot["counts"]
    assert numpy.shares_memory(again, arrays[0])
    path.unlink()
    snapshot.close()
    del snapshot
    gc.collect()
    assert [array.tolist() for array in arrays] == [[1, 2, 3], [0.25, -0.5], [1.5, 2.5, 3.5]]
    for array in arrays:
        assert not array.flags.writeable
        assert array.flags.aligned
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    view = memoryview(arrays[0].base)
    assert (view.format, view.itemsize, view.shape, view.readonly) == ("q", 8, (3,), True)


def test_without_numpy_lists_of_numbers_are_memoryviews(path: Path) -> None:
    program = """
import sys
sys.modules["numpy"] = None
import nuthatch
with nuthatch.open_snapshot(sys.argv[1]) as snapshot:
    vector = snapshot["vector"]
    empty = snapshot.get_f32_list("nothing")
    assert snapshot["counts"].tolist() == [1, 2, 3]
    try:
        snapshot.get_many(["age"], out="numpy")
    except nuthatch.ArgumentError as error:
        assert "NumPy is not installed" in str(error)
assert isinstance(vector, memoryview) and vector.tolist() == [1.5, 2.5, 3.5], vector
assert empty.tolist() == [] and empty.format == "f"
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)


def test_an_empty_list_reads_as_any_list(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:
        assert snapshot["nothing"] == []
        assert snapshot.get_string_list("nothing") == []
        for name, dtype in (("i64", "int64"), ("f64", "float64"), ("f32", "float32")):
            empty = getattr(snapshot, f"get_{name}_list")("nothing")
            assert (empty.dtype.name, empty.shape) == (dtype, (0,))
        with pytest.raises(nuthatch.WrongTypeError, match="expected a value of type string"):
            snapshot.get_string("nothing")


def test_a_wrong_type_names_key_types_and_what_to_do(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:
        with pytest.raises(nuthatch.WrongTypeError) as error:
            snapshot.get_i64("name")
        assert isinstance(error.value, TypeError)
        assert (error.value.code, error.value.expected, error.value.found) == (
            "wrong-type",
            "i64",
            "string",
        )
        assert str(error.value) == (
            f'{path}: key "name": expected a value of type i64, found string; request the type '
            "that was found, or correct the writer of the value"
        )
        with pytest.raises(nuthatch.WrongTypeError):
            snapshot.get_many(["age", "name"], value_type="i64")


def test_many_keys_as_a_list(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:
        wanted: list[str | bytes] = ["name", "missing", b"age", "tags"]
        expected = ["Ada", None, 36, ["admin", "früh"]]
        assert snapshot.get_many(wanted) == expected
        assert snapshot.get_many(tuple(wanted)) == expected
        assert snapshot.get_many(key for key in wanted) == expected
        assert snapshot.get_many(wanted, "none")[1] == "none"
        assert snapshot.get_many([]) == []
        assert snapshot.get_many(["age"] * 100_000) == [36] * 100_000
        with pytest.raises(nuthatch.ArgumentError, match="out: expected list, numpy or arrow"):
            snapshot.get_many(wanted, out="set")  # type: ignore[call-overload]
        with pytest.raises(nuthatch.ArgumentError, match="value_type: expected a type such as"):
            snapshot.get_many(wanted, value_type="int")


def build(path: Path, rows: dict[str, object]) -> nuthatch.Snapshot:
    nuthatch.build_snapshot(path, rows)
    return nuthatch.open_snapshot(path)


def test_many_keys_as_a_numpy_array(tmp_path: Path) -> None:
    rows: dict[str, object] = {f"i{n}": n for n in range(1000)}
    rows |= {f"v{n}": numpy.array([n, n / 2], dtype="float32") for n in range(1000)}
    rows |= {"f": 0.5, "yes": True, "no": False, "empty": [], "three": [1.0, 2.0, 3.0]}
    with build(tmp_path / "rows.nut", rows) as snapshot:
        numbers = snapshot.get_many([f"i{n}" for n in range(999, -1, -1)], out="numpy")
        assert numbers.dtype == numpy.int64
        assert numbers.tolist() == list(range(999, -1, -1))
        numbers[0] = 7  # It is a copy.
        assert snapshot["i999"] == 999
        matrix = snapshot.get_many([f"v{n}" for n in range(1000)], out="numpy")
        assert (matrix.dtype, matrix.shape) == (numpy.float32, (1000, 2))
        assert matrix[10].tolist() == [10, 5]
        assert snapshot.get_many(["yes", "no"], out="numpy").tolist() == [True, False]
        missing = snapshot.get_many(["f", "missing"], math.nan, out="numpy")
        assert missing[0] == 0.5
        assert math.isnan(missing[1])
        assert snapshot.get_many(["v1", "x"], 9, out="numpy").tolist() == [[1, 0.5], [9, 9]]
        assert snapshot.get_many([], out="numpy", value_type="f64").shape == (0,)
        assert snapshot.get_many(["empty"] * 2, out="numpy", value_type="list of f32").shape == (
            2,
            0,
        )
        with pytest.raises(KeyError, match="missing"):
            snapshot.get_many(["f", "missing"], out="numpy")
        with pytest.raises(nuthatch.WrongTypeError, match=r'key "f": .* type i64, found f64'):
            snapshot.get_many(["i1", "f"], out="numpy")
        with pytest.raises(nuthatch.ArgumentError, match='key "empty": expected a list of 2 num'):
            snapshot.get_many(["v1", "empty"], out="numpy")
        with pytest.raises(nuthatch.ArgumentError, match="expected at least one key with a value"):
            snapshot.get_many(["missing"], 0, out="numpy")


def test_many_keys_as_an_arrow_column(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:

        def column(*keys: str, **options: str) -> pyarrow.Array:
            wanted = [*keys, "missing"]
            found = snapshot.get_many(wanted, out="arrow", **options)  # type: ignore[call-overload]
            assert (len(found), found.null_count) == (len(keys) + 1, 1)
            array = pyarrow.array(found)
            array.validate(full=True)
            assert polars.Series(found).to_list() == array.to_pylist()
            return array

        for key, kind in (
            ("name", pyarrow.large_string()),
            ("age", pyarrow.int64()),
            ("score", pyarrow.float64()),
            ("active", pyarrow.bool_()),
            ("raw", pyarrow.large_binary()),
            ("tags", pyarrow.large_list(pyarrow.large_string())),
            ("counts", pyarrow.large_list(pyarrow.int64())),
            ("weights", pyarrow.large_list(pyarrow.float64())),
            ("vector", pyarrow.large_list(pyarrow.float32())),
        ):
            array = column(key)
            expected = ROWS[key]
            expected = expected.tolist() if isinstance(expected, numpy.ndarray) else expected
            assert array.type == kind
            assert array.to_pylist() == [expected, None]
        assert column("nothing", "tags").to_pylist() == [[], ["admin", "früh"], None]
        assert column("nothing").to_pylist() == [[], None]
        assert column("nothing", value_type="list of f32").type.value_type == pyarrow.float32()
        assert column().type == pyarrow.null()
        assert column(value_type="i64").type == pyarrow.int64()
        with pytest.raises(nuthatch.WrongTypeError, match='key "age"'):
            column("name", "age")


def test_a_column_outlives_its_snapshot_and_may_be_read_twice_or_never(path: Path) -> None:
    with nuthatch.open_snapshot(path) as snapshot:
        found = snapshot.get_many(["tags"] * 1000, out="arrow")
    found.__arrow_c_array__()
    found.__arrow_c_schema__()
    first, second = pyarrow.array(found), pyarrow.array(found)
    del found
    gc.collect()
    assert first.equals(second)
    assert first.to_pylist()[999] == ["admin", "früh"]


def test_pickling_opens_the_same_file_again_and_no_other(path: Path) -> None:
    with nuthatch.open_snapshot(path, residency="populated") as snapshot:
        pickled = pickle.dumps(snapshot)
        with pickle.loads(pickled) as again:
            assert again["name"] == "Ada"
    assert path.stat().st_size > len(pickled)
    nuthatch.build_snapshot(path, {**ROWS, "age": 37})
    with pytest.raises(nuthatch.ChangedError, match="the file was replaced after it was pickled"):
        pickle.loads(pickled)
    nuthatch.build_snapshot(path, ROWS, metadata={"source": "test", "raw": b"\xff"})
    assert pickle.loads(pickled)["age"] == 36, "the same content is the same snapshot"
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickled)


def test_errors_of_the_system_are_those_of_python(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.nut: open") as error:
        nuthatch.open_snapshot(tmp_path / "none.nut")
    assert isinstance(error.value, nuthatch.NotFoundError)
    assert (error.value.code, error.value.path) == ("io", str(tmp_path / "none.nut"))
    assert pickle.loads(pickle.dumps(error.value)).path == error.value.path
    with pytest.raises(nuthatch.Error, match="not a regular file"):
        nuthatch.open_snapshot(tmp_path)
    (tmp_path / "other").write_bytes(b"something else")
    with pytest.raises(nuthatch.DamagedError) as damage:
        nuthatch.open_snapshot(tmp_path / "other")
    assert (damage.value.code, damage.value.offset) == ("not-a-snapshot", 0)
    with pytest.raises(nuthatch.ArgumentError, match="residency: expected mapped, populated or"):
        nuthatch.open_snapshot(tmp_path / "other", residency="disk")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'mode'"):
        nuthatch.open_snapshot(tmp_path / "other", mode="r")  # type: ignore[call-arg]
