"""Rows for a new snapshot, from mappings, pairs, and tables of pandas, PyArrow and Polars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from nuthatch.errors import ArgumentError

if TYPE_CHECKING:
    from nuthatch._native import SnapshotWriter

__all__ = ["add_rows"]

# Number of rows of a table that are Python objects at a time.
_BATCH_ROWS = 65_536

# Keys and values of some rows, and the type of the values if it does not follow from their class.
_Rows: TypeAlias = tuple[list[Any], list[Any], str | None]


def add_rows(
    writer: SnapshotWriter,
    source: Any,
    key: str | None,
    value: str | None,
    value_type: str | None,
) -> None:
    """Adds the rows of a source to a writer.

    Args:
        writer: The writer.
        source: A mapping, an iterable of pairs, or a table.
        key: Name of the column with the keys of a table; by default the first one.
        value: Name of the column with the values of a table; by default the second of two.
        value_type: The type of all values, or ``None``.
    """
    rows = _table_rows(source, key, value)
    if rows is not None:
        for keys, values, own_type in rows:
            writer._insert_pairs(zip(keys, values, strict=True), value_type or own_type)
        return
    if key is not None or value is not None:
        found = type(source).__name__
        raise ArgumentError(f"key, value: expected a table with columns, found {found}", "argument")
    pairs = source.items() if isinstance(source, Mapping) else source
    writer._insert_pairs(pairs, value_type)


def _table_rows(source: Any, key: str | None, value: str | None) -> Iterator[_Rows] | None:
    """Returns the rows of a table in batches; ``None`` for another source."""
    library = type(source).__module__.partition(".")[0]
    kind = type(source).__name__
    if library == "pandas" and kind == "DataFrame":
        return _pandas_rows(source, *_columns(list(source.columns), key, value))
    if library == "polars" and kind == "DataFrame":
        return _polars_rows(source, *_columns(source.columns, key, value))
    if library == "pyarrow" and kind in ("Table", "RecordBatch"):
        return _pyarrow_rows(source, *_columns(source.schema.names, key, value))
    if hasattr(source, "__arrow_c_stream__"):
        import pyarrow

        table = pyarrow.table(source)
        return _pyarrow_rows(table, *_columns(table.schema.names, key, value))
    return None


def _columns(names: list[Any], key: Any, value: Any) -> tuple[Any, Any]:
    """Returns the names of the columns of keys and values."""
    if key is None and names:
        key = names[0]
    rest = [name for name in names if name != key]
    if value is None and len(rest) == 1:
        value = rest[0]
    for what, name in (("key", key), ("value", value)):
        if names.count(name) != 1:
            found = ", ".join(map(repr, names))
            message = f"{what}: expected the name of one column, found {name!r}, of {found}"
            raise ArgumentError(message, "argument")
    return key, value


def _pandas_rows(table: Any, key: Any, value: Any) -> Iterator[_Rows]:
    for start in range(0, len(table), _BATCH_ROWS):
        rows = table.iloc[start : start + _BATCH_ROWS]
        yield _pandas_list(rows[key]), _pandas_list(rows[value]), None


def _pandas_list(column: Any) -> list[Any]:
    """Returns the values of a column, with ``None`` for missing ones.

    In a column of floats, NaN is a value. In others, pandas uses it for missing values.
    """
    values: list[Any] = column.tolist()
    dtype = column.dtype
    if type(dtype).__module__.startswith("numpy") and dtype.kind in "biuf":
        return values
    missing = column.isna()
    if missing.any():
        return [None if gone else each for each, gone in zip(values, missing, strict=True)]
    return values


def _polars_rows(table: Any, key: str, value: str) -> Iterator[_Rows]:
    is_f32 = str(table.schema[value]).startswith(("List(Float32", "Array(Float32"))
    own_type = "list of f32" if is_f32 else None
    for rows in table.select(key, value).iter_slices(_BATCH_ROWS):
        yield rows.get_column(key).to_list(), rows.get_column(value).to_list(), own_type


def _pyarrow_rows(table: Any, key: str, value: str) -> Iterator[_Rows]:
    found = table.schema.field(value).type
    is_list = "list" in str(found).partition("<")[0]
    own_type = "list of f32" if is_list and str(found.value_type) == "float" else None
    for start in range(0, table.num_rows, _BATCH_ROWS):
        rows = table.slice(start, _BATCH_ROWS)
        yield rows.column(key).to_pylist(), rows.column(value).to_pylist(), own_type
