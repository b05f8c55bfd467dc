"""Snapshots: immutable files of typed values by key, mapped into memory."""

from __future__ import annotations

import os
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, Literal, Unpack

from nuthatch._native import (
    Snapshot,
    SnapshotSummary,
    SnapshotWatch,
    SnapshotWriter,
    _open_snapshot,
    _watch_snapshot,
    _write_snapshot,
)
from nuthatch.errors import ChangedError
from nuthatch.options import SnapshotOptions, SnapshotWatchOptions, SnapshotWriterOptions

__all__ = ["build_snapshot", "open_snapshot", "watch_snapshot", "write_snapshot"]

Mapping.register(Snapshot)


def open_snapshot(path: str | os.PathLike[str], **options: Unpack[SnapshotOptions]) -> Snapshot:
    """Opens a snapshot: a file, or a set of shards by the path of its manifest.

    Checks headers and dictionaries only, so it takes the same time for a file of any size, unless
    the option ``residency`` makes it read all of it.

    Args:
        path: The path. A relative path is that of the current working directory.
        **options: Settings of ``nuthatch.SnapshotOptions``.

    Returns:
        The snapshot, which is also a context manager that closes it.

    Raises:
        NotFoundError: The file does not exist. It is a ``FileNotFoundError``.
        AccessError: The system denies access. It is a ``PermissionError``.
        DamagedError: The file is damaged, or not a snapshot.
        UnsupportedError: A newer version has written the file.
        ArgumentError: An option is invalid.
        Error: Another system call failed, or the path is not that of a regular file; the code is
            ``io``.
    """
    return _open_snapshot(path, **options)


def build_snapshot(
    path: str | os.PathLike[str],
    source: Mapping[str | bytes, Any] | Iterable[tuple[str | bytes, Any]] | Any,
    *,
    key: str | None = None,
    value: str | None = None,
    value_type: str | None = None,
    **options: Unpack[SnapshotWriterOptions],
) -> SnapshotSummary:
    """Builds a snapshot and publishes it at a path, in place of the file that is there.

    The bytes of the file depend on the rows and the options only. ``nuthatch build`` writes the
    same bytes. If the build fails, the path is unchanged, unless the code of the error is
    ``not-durable``.

    Args:
        path: The path of the new file.
        source: A mapping, an iterable of pairs, or a table of pandas, PyArrow or Polars.
        key: Name of the column with the keys of a table; by default the first one.
        value: Name of the column with the values of a table; by default the other one of two.
        value_type: The type of all values, if it does not follow from their class, as for
            ``SnapshotWriter.add``.
        **options: Settings of ``nuthatch.SnapshotWriterOptions``.

    Returns:
        The numbers of entries and bytes.

    Raises:
        ArgumentError: A row has an invalid key or value, or a key has several rows. The message has
            the number of the row, from 0. Also: an option is invalid.
        NotFoundError: The folder of the path does not exist.
        AccessError: The system denies access to the folder.
        Error: Another system call failed, such as for a full disk; the code is ``io``.
    """
    writer = SnapshotWriter(path, **options)
    try:
        writer.insert_many(source, key=key, value=value, value_type=value_type)
        return writer.finish()
    finally:
        writer.abandon()


def write_snapshot(
    table: Any,
    path: str | os.PathLike[str],
    *,
    key: str,
    values: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    nulls: Literal["absent", "empty", "error"] = "absent",
    **options: Unpack[SnapshotWriterOptions],
) -> SnapshotSummary:
    """Builds a snapshot of the rows of a table and publishes it at a path.

    Each row becomes an entry for each column with values, whose key is made by a template. The
    templates, types and nulls are those of ``nuthatch populate``: see its page in the
    documentation. The table is read by the Arrow C stream interface, so PyArrow is needed only if
    the library of the table needs it, as pandas does. The interpreter's lock is released while the
    snapshot is built. If the build fails, the path is unchanged, unless the code of the error is
    ``not-durable``.

    Args:
        table: A table of pandas, Polars or PyArrow, a ``RecordBatchReader``, or another object with
            the Arrow C stream interface. In columns of pandas, NaN is a null.
        path: The path of the new file.
        key: The template of the keys, such as ``user:{id}.{column}``: ``{id}`` stands for the value
            of the column ``id``, and ``{column}`` for the name of the column with the value.
        values: Columns with values; by default all that are not in the key. An index of pandas
            without a name counts only if it is listed.
        types: Types of columns if they differ from those of the table: ``bytes``, ``string``,
            ``bool``, ``i64``, ``f64``, ``i64[]``, ``f64[]``, ``f32[]``, ``string[]``, or
            ``flatten``, which makes an entry for each field of a JSON object.
        nulls: What a null becomes: ``absent``, no entry, ``empty``, an empty string, or ``error``.
        **options: Settings of ``nuthatch.SnapshotWriterOptions``.

    Returns:
        The numbers of entries and bytes.

    Raises:
        TypeError: The table has no Arrow C stream interface.
        ArgumentError: A value cannot be stored or a key has several rows. The message has the
            number of the row, from 0, and the column. Also: a column does not exist, or the
            template or an option is invalid.
        NotFoundError: The folder of the path does not exist.
        AccessError: The system denies access to the folder.
        Error: Another system call failed, such as for a full disk; the code is ``io``.
    """
    names = None if values is None else list(values)
    column_types = None if types is None else dict(types)
    return _write_snapshot(table, path, key, names, column_types, nulls, **options)


def watch_snapshot(
    path: str | os.PathLike[str], **options: Unpack[SnapshotWatchOptions]
) -> SnapshotWatch:
    """Opens a snapshot and watches its path.

    A file at the path is replaced by renaming another one over it.

    Args:
        path: The path. A relative path is that of the current working directory.
        **options: Settings of ``nuthatch.SnapshotWatchOptions``.

    Returns:
        The watch, which is also a context manager that closes it.

    Raises:
        Error: The first file cannot be opened, with the exceptions of ``open_snapshot``. With
            ``verify=True``, a file that is damaged anywhere is a ``DamagedError``.
    """
    return _watch_snapshot(path, **options)


def _open_again(path: str, identity: str, options: SnapshotOptions) -> Snapshot:
    """Opens a snapshot that was pickled."""
    snapshot = _open_snapshot(path, **options)
    if snapshot._identity != identity or not identity:
        message = (
            f"{path}: expected the file with the header checksum {identity or 'of the pickle'}, "
            f"found {snapshot._identity}: the file was replaced after it was pickled; open the "
            "path, or pickle a watch"
        )
        snapshot.close()
        raise ChangedError(message, "changed")
    return snapshot


def _watch_again(path: str, options: SnapshotWatchOptions) -> SnapshotWatch:
    """Watches the path of a watch that was pickled."""
    return _watch_snapshot(path, **options)


class _Keys(KeysView[str | bytes]):
    """The keys of a snapshot."""


class _Values(ValuesView[Any]):
    """The values of a snapshot, in one pass over the file."""

    _mapping: Snapshot

    def __iter__(self) -> Iterator[Any]:
        return self._mapping._values()


class _Items(ItemsView[str | bytes, Any]):
    """The entries of a snapshot, in one pass over the file."""

    _mapping: Snapshot

    def __iter__(self) -> Iterator[tuple[str | bytes, Any]]:
        return self._mapping._items()
