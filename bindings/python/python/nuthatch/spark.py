"""A data source of PySpark that publishes data frames as snapshots, and reads generations back.

``register`` adds the format ``nuthatch`` to a session. The package must be installed on the
executors. PySpark 4.0 or later is required, with PyArrow.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from nuthatch import delivery
from nuthatch._native import (
    _download,
    _fetch_headers,
    _fetch_staged,
    _join_shards,
    _merge_shards,
    _publish_shards,
    _remove_staged,
    _remove_uploads,
    _stage_file,
    _upload_shards,
    _write_shards,
)
from nuthatch.errors import ArgumentError, Error
from nuthatch.snapshots import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from nuthatch._native import _UploadedFields

__all__ = ["NuthatchDataSource", "register", "save"]

# Number of shards if the option is not set.
_SHARDS = 16
_MAX_SHARDS = 65_536
# Number of generations that are kept if the option is not set.
_KEEP = 10
# The schema of a data frame whose partitions have the parts of whole shards.
_SHARD, _PART = "nuthatch_shard", "nuthatch_part"
_PARTS = f"{_SHARD} int, {_PART} binary"
# Bytes of rows of which one part of each shard is built.
_PART_BYTES = 64 << 20
# Memory of a task for the delta of a shard, in bytes, if the option is not set.
_DELTA_MEMORY = 256 << 20
# Rows of a batch that is read.
_BATCH_ROWS = 8192
# The columns of values, by the type of the value.
_COLUMNS = {
    "bytes": pyarrow.binary(),
    "string": pyarrow.string(),
    "bool": pyarrow.bool_(),
    "i64": pyarrow.int64(),
    "f64": pyarrow.float64(),
    "i64_list": pyarrow.list_(pyarrow.int64()),
    "f64_list": pyarrow.list_(pyarrow.float64()),
    "f32_list": pyarrow.list_(pyarrow.float32()),
    "string_list": pyarrow.list_(pyarrow.string()),
}
_SCHEMA = (
    "key string, type string, bytes binary, string string, bool boolean, i64 bigint, f64 double,"
    " i64_list array<bigint>, f64_list array<double>, f32_list array<float>,"
    " string_list array<string>"
)


class NuthatchDataSource(DataSource):
    """The format ``nuthatch``. Its options are on the page `populate` of the documentation."""

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format."""
        return "nuthatch"

    def schema(self) -> str:
        """Returns the columns of a generation: the key, the type, and one for each type."""
        return _SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """Creates the reader of a generation.

        Args:
            schema: The columns, which are always the same.

        Returns:
            The reader.
        """
        options = _Options(self.options)
        generation = options.number("generation")
        trust_keys = options.names("trustkeys")
        options.finish()
        return _Reader(options.path, generation, trust_keys or [])

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Creates the writer of a generation.

        Args:
            schema: The columns.
            overwrite: Whether the mode is ``overwrite``, the only one that is supported.

        Returns:
            The writer.
        """
        if not overwrite:
            message = 'expected the mode "overwrite": a generation has all rows of a snapshot'
            raise ArgumentError(message, "argument")
        has_parts = [field.name for field in schema.fields] == [_SHARD, _PART]
        return _Writer(_write_options(_Options(self.options)), has_parts)


def register(spark: SparkSession) -> None:
    """Registers the format ``nuthatch`` in a session.

    Args:
        spark: The session.
    """
    spark.dataSource.register(NuthatchDataSource)


def save(
    table: DataFrame,
    destination: str | os.PathLike[str],
    *,
    key: str,
    values: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    nulls: Literal["absent", "empty", "error"] = "absent",
    shards: int = _SHARDS,
    **options: str | int,
) -> None:
    """Publishes a data frame as a generation of a destination.

    Rows are repartitioned by the hash of their keys. Each executor builds, verifies and uploads
    whole shards; the driver publishes the set. Without this,
    ``table.write.format("nuthatch")`` makes the same snapshot, but the driver merges shards whose
    rows are in several partitions.

    Args:
        table: The data frame.
        destination: A folder that all executors share, or an address such as ``s3://bucket/path``.
        key: The template of the keys, as for ``nuthatch.write_snapshot``.
        values: Columns with values; by default all that are not in the key.
        types: Types of columns if they differ from those of the data frame.
        nulls: What a null becomes: ``absent``, ``empty`` or ``error``.
        shards: Number of shards of the set.
        **options: Other options of the format, such as ``compress="zstd"``.

    Raises:
        ArgumentError: An option is invalid.
    """
    register(table.sparkSession)
    mapping = _Mapping(key, _as_list(values), _as_dict(types), nulls)
    settings: dict[str, Any] = {"shards": shards, **options}
    seed, on_duplicate = settings.get("seed", 0), settings.get("onDuplicate", "error")
    parts = _parts(table, mapping, {"shards": shards, "seed": seed, "on_duplicate": on_duplicate})
    writer = parts.write.format("nuthatch").mode("overwrite").options(**settings)
    address = os.fspath(destination)
    # Spark's processes need not have the working directory of this one.
    writer.save(address if "://" in address else os.path.abspath(address))


class _Mapping(NamedTuple):
    """How rows become entries."""

    key: str
    values: list[str] | None
    types: dict[str, str] | None
    nulls: str


class _Options:
    """The options of a format. Spark ignores the case of their names."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._unused = {name.lower(): value for name, value in options.items()}
        path = self._unused.pop("path", None)
        if not path:
            raise ArgumentError("path: expected a destination, found none", "argument")
        self.path: str = path

    def text(self, name: str, default: str | None = None) -> str | None:
        return self._unused.pop(name, default)

    def number(self, name: str) -> int | None:
        text = self.text(name)
        try:
            return None if text is None else int(text)
        except ValueError:
            raise ArgumentError(f"{name}: expected a number, found {text!r}", "argument") from None

    def json(self, name: str, kind: type) -> Any:
        text = self.text(name)
        if text is None:
            return None
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, kind):
            message = f"{name}: expected a {kind.__name__} in JSON, found {text!r}"
            raise ArgumentError(message, "argument")
        return found

    def names(self, name: str) -> list[str] | None:
        text = self.text(name)
        return None if text is None else [part.strip() for part in text.split(",")]

    def finish(self) -> None:
        """Fails if an option is left that the format does not have."""
        for name in self._unused:
            raise ArgumentError(f"{name}: expected no option of this name", "argument")


@dataclass(frozen=True)
class _WriteOptions:
    """The options of a writer."""

    destination: str
    mapping: _Mapping
    build: dict[str, Any]
    publish: dict[str, Any]
    metadata: dict[str, str] | None


def _write_options(options: _Options) -> _WriteOptions:
    mapping = _Mapping(
        options.text("key", "{key}") or "",
        options.names("values"),
        options.json("types", dict),
        options.text("nulls", "absent") or "",
    )
    shards = options.number("shards")
    shards = _SHARDS if shards is None else shards
    if not 1 <= shards <= _MAX_SHARDS:
        raise ArgumentError(f"shards: expected 1 to {_MAX_SHARDS}, found {shards}", "argument")
    build = {
        "shards": shards,
        "on_duplicate": options.text("onduplicate"),
        "compress": options.text("compress"),
        "level": options.number("level"),
        "memory": options.number("memory"),
        "seed": options.number("seed"),
    }
    publish = {
        "name": options.text("name", "snapshot.nut"),
        "sign_key": options.text("signkey"),
        "trust_keys": options.names("trustkeys"),
        "keep": options.number("keep"),
    }
    metadata = options.json("metadata", dict)
    options.finish()
    return _WriteOptions(options.path, mapping, _given(build), _given(publish), metadata)


class _Staged(NamedTuple):
    """A shard that a task has built and staged."""

    number: int
    file: str
    name: str
    bytes: int
    blake3: str


@dataclass
class _Message(WriterCommitMessage):
    """The shards of a task: whole ones are uploaded, and parts of shards are staged."""

    partition: int
    uploaded: list[_UploadedFields]
    staged: list[_Staged]


class _Writer(DataSourceArrowWriter):
    """Tasks build shards of their rows; the driver makes the set and publishes it.

    Tasks upload whole shards to the objects of the destination. Without parts, several tasks can
    have rows of a shard: they stage what they have built, and the driver merges it. A message names
    the files of one attempt of a task, and the driver uses no others, so attempts that are repeated
    add no rows.
    """

    def __init__(self, options: _WriteOptions, has_parts: bool) -> None:
        self._options = options
        self._has_parts = has_parts
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> _Message:
        """Builds the shards of the rows of a partition."""
        options = self._options
        task = TaskContext.get()
        assert task is not None
        partition, attempt = task.partitionId(), task.taskAttemptId()
        message = _Message(partition, [], [])
        with tempfile.TemporaryDirectory(prefix="nuthatch-") as folder:
            path = Path(folder) / "shards"
            try:
                if self._has_parts:
                    built = _merge(path, _write_parts(iterator, Path(folder)), options.build)
                    message.uploaded = self._upload([file for _, file, _, _ in built])
                    return message
                built = _build(iterator, path, options.mapping, options.build)
            except ArgumentError as error:
                error.add_note(f"partition {partition}")
                raise
            for number, file, _, _ in built:
                name = f"{attempt}-{file.name}"
                length, blake3 = _stage_file(options.destination, self._job, file, name)
                message.staged.append(_Staged(number, file.name, name, length, blake3))
        return message

    def _upload(self, files: list[Path]) -> list[_UploadedFields]:
        build = self._options.build
        memory = build.get("memory", _DELTA_MEMORY)
        return _upload_shards(self._options.destination, self._job, files, build["shards"], memory)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Makes the set of the shards of all tasks and publishes it.

        Tasks have verified what they uploaded.
        """
        found = [each for each in messages if isinstance(each, _Message)]
        found.sort(key=lambda each: each.partition)
        uploaded = [shard for message in found for shard in message.uploaded]
        by_number: dict[int, list[_Staged]] = {}
        for message in found:
            for staged in message.staged:
                by_number.setdefault(staged.number, []).append(staged)
        with tempfile.TemporaryDirectory(prefix="nuthatch-") as folder:
            shards = _fetch_headers(self._options.destination, self._job, uploaded, Path(folder))
            for staged_shards in by_number.values():
                shards += self._fetch(staged_shards, Path(folder))
            self._publish(Path(folder) / "snapshot.nut", shards, uploaded)
        # What could not be removed is removed by a later publication, or by hand.
        with contextlib.suppress(Error):
            self._remove()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Removes what tasks have uploaded and staged."""
        self._remove()

    def _publish(self, path: Path, shards: list[Path], uploaded: list[_UploadedFields]) -> None:
        """Publishes the set of shards, of which those that were uploaded have only headers."""
        options = self._options
        _join_shards(path, shards, **options.build, metadata=options.metadata or {})
        publish = {"sign_key": None, "trust_keys": [], "keep": _KEEP, **options.publish}
        _publish_shards(
            options.destination,
            self._job,
            path,
            uploaded,
            publish["name"],
            publish["sign_key"],
            publish["trust_keys"],
            publish["keep"],
        )

    def _remove(self) -> None:
        try:
            _remove_uploads(self._options.destination, self._job)
        finally:
            _remove_staged(self._options.destination, self._job)

    def _fetch(self, staged: list[_Staged], folder: Path) -> list[Path]:
        """Fetches a shard, of which several tasks can have built parts."""
        if len(staged) == 1:
            return [self._fetch_file(staged[0], folder / staged[0].file)]
        parts = [self._fetch_file(each, folder / each.name) for each in staged]
        built = _merge(folder / "merged", parts, self._options.build)
        return [file for _, file, _, _ in built]

    def _fetch_file(self, staged: _Staged, to: Path) -> Path:
        destination, name = self._options.destination, staged.name
        _fetch_staged(destination, self._job, name, staged.bytes, staged.blake3, to)
        return to


@dataclass
class _File(InputPartition):
    """A file of a generation."""

    fields: tuple[str, int, str, str]


class _Reader(DataSourceReader):
    """Reads each file of a generation in a partition."""

    def __init__(self, destination: str, generation: int | None, trust_keys: list[str]) -> None:
        self._destination = destination
        self._generation = generation
        self._trust_keys = trust_keys

    def partitions(self) -> Sequence[_File]:
        """Returns the shards of the generation, or its only file."""
        generations = delivery.generations(self._destination, trust_keys=self._trust_keys)
        for each in generations:
            if each.id == self._generation or (self._generation is None and each.is_current):
                files = each.files[1:] or each.files
                fields = ((file.name, file.bytes, file.blake3, file.object) for file in files)
                return [_File(file) for file in fields]
        listed = ", ".join(str(each.id) for each in generations)
        message = f"generation: expected one of {listed}, found {self._generation}"
        raise ArgumentError(message, "argument")

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Reads the entries of a file."""
        assert isinstance(partition, _File)
        with tempfile.TemporaryDirectory(prefix="nuthatch-") as folder:
            path = Path(folder) / "file"
            _download(self._destination, partition.fields, path)
            with open_snapshot(path) as snapshot:
                items = iter(snapshot.items())
                while rows := list(itertools.islice(items, _BATCH_ROWS)):
                    yield _batch(rows)


def _build(
    batches: Iterator[pyarrow.RecordBatch], path: Path, mapping: _Mapping, build: dict[str, Any]
) -> list[tuple[int, Path, int, int]]:
    """Builds the shards of rows."""
    first = next(batches, None)
    if first is None:
        return []
    rows = pyarrow.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
    return _write_shards(rows, path, *mapping, **build)


def _merge(
    path: Path, parts: list[Path], build: dict[str, Any]
) -> list[tuple[int, Path, int, int]]:
    """Builds the shards of the entries of parts, and removes the parts."""
    built = _merge_shards(path, parts, **build)
    for part in parts:
        part.unlink()
    return built


def _parts(table: DataFrame, mapping: _Mapping, build: dict[str, Any]) -> DataFrame:
    """Returns parts of shards, with all parts of a shard in one partition."""

    def split(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        rest = iter(batches)
        while some := _take(rest, _PART_BYTES):
            with tempfile.TemporaryDirectory(prefix="nuthatch-") as folder:
                built = _build(iter(some), Path(folder) / "part", mapping, build)
                for number, file, _, _ in built:
                    yield pyarrow.record_batch(
                        {
                            _SHARD: pyarrow.array([number], pyarrow.int32()),
                            _PART: pyarrow.array([file.read_bytes()], pyarrow.binary()),
                        }
                    )

    return table.mapInArrow(split, _PARTS).repartition(build["shards"], _SHARD)


def _take(batches: Iterator[pyarrow.RecordBatch], length: int) -> list[pyarrow.RecordBatch]:
    """Takes batches until they have this many bytes."""
    taken: list[pyarrow.RecordBatch] = []
    for batch in batches:
        taken.append(batch)
        length -= batch.nbytes
        if length <= 0:
            break
    return taken


def _write_parts(batches: Iterator[pyarrow.RecordBatch], folder: Path) -> list[Path]:
    """Writes parts to files, and returns their paths."""
    paths: list[Path] = []
    for batch in batches:
        for part in batch.column(_PART):
            paths.append(folder / f"{len(paths)}.part")
            paths[-1].write_bytes(part.as_buffer())
    return paths


def _batch(rows: list[tuple[str | bytes, Any]]) -> pyarrow.RecordBatch:
    """Returns entries in the columns of the schema."""
    keys, types = [], []
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in _COLUMNS}
    for row, (key, value) in enumerate(rows):
        if isinstance(key, bytes):
            raise ArgumentError(f"expected keys in UTF-8, found {key!r}", "argument")
        name = _type_name(value)
        keys.append(key)
        types.append(name)
        if name in columns:
            columns[name][row] = value
    arrays = {
        "key": pyarrow.array(keys, pyarrow.string()),
        "type": pyarrow.array(types, pyarrow.string()),
    }
    arrays |= {name: pyarrow.array(columns[name], kind) for name, kind in _COLUMNS.items()}
    return pyarrow.record_batch(arrays)


def _type_name(value: Any) -> str:
    """Returns the name of the column for a value; ``empty_list`` for a list without a type."""
    match value:
        case bytes():
            return "bytes"
        case str():
            return "string"
        case bool():
            return "bool"
        case int():
            return "i64"
        case float():
            return "f64"
        case []:
            return "empty_list"
        case list():
            return "string_list"
    # An array of NumPy, or a view if NumPy is not there.
    code = memoryview(value).format
    return {"f": "f32_list", "d": "f64_list"}.get(code, "i64_list")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _as_list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _as_dict(types: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if types is None else dict(types)
