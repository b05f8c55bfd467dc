"""Validators of origins, how far they are trusted, and failures of origins."""

import os
import pickle
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import nuthatch
from nuthatch.fs import NuthatchCache, http, versions
from origin import Handler, Origin

BLOCK = 64 << 10
DATA = os.urandom(20 * BLOCK)


@pytest.fixture
def fs(tmp_path: Path) -> NuthatchCache:
    return NuthatchCache("http", cache=tmp_path / "cache", block_size=BLOCK, request_size=BLOCK)


def test_an_unchanged_weak_tag_does_not_mix_bytes_of_two_modification_times(
    fs: NuthatchCache, origin: Origin
) -> None:
    url = origin.put("/data", DATA, 'W/"weak"', age=100)
    file = fs.open(url)
    assert file.read(10) == DATA[:10]
    origin.put("/data", DATA[::-1], 'W/"weak"', age=50)
    with pytest.raises(nuthatch.ChangedError, match="changed while it was read"):
        file.read_at(10 * BLOCK, 10)
    assert fs.cat_file(url) == DATA[::-1]


class Seconds(MemoryFileSystem):  # type: ignore[misc]
    """A filesystem whose times of modification are whole seconds."""

    protocol = "seconds"
    store: dict[str, Any] = {}  # noqa: RUF012 - as the class that it derives from
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def modified(self, path: str) -> datetime:
        assert self.exists(path)
        return self.now

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().info(path, **kwargs)
        found.pop("created", None)
        return found


def test_a_time_in_whole_seconds_is_a_validator_once_it_is_old_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Regression test: after two writes within a second, reads returned the bytes of the first.
    target = Seconds()
    fs = NuthatchCache(fs=target, cache=tmp_path / "cache")
    written = target.now.timestamp()
    monkeypatch.setattr(time, "time", lambda: written + 0.9)
    for data in (b"one", b"two"):
        target.pipe_file("/object", data)
        assert fs.cat_file("/object") == data
    with fs.open("/object") as file:
        monkeypatch.setattr(time, "time", lambda: written + 10)
        assert file.read() == b"two"
    assert fs.cat_file("/object") == b"two"
    fetched = fs.counts.fetched_bytes
    assert fs.cat_file("/object") == b"two"
    assert fs.counts.fetched_bytes == fetched


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1_700_000_000, 1_700_000_000),
        (1_700_000_000.25, 1_700_000_000.25),
        (1_700_000_000_250, 1_700_000_000.25),
        (1_700_000_000_250_000_000, 1_700_000_000.25),
        ("20231114221320", 1_700_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), 1_700_000_000),
        ("yesterday", None),
        (None, None),
    ],
)
def test_modification_times_of_all_types_are_parsed(value: object, seconds: float | None) -> None:
    found = versions._seconds(value)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_a_version_is_the_same_before_and_after_its_time_is_old_enough(
    fs: NuthatchCache, origin: Origin
) -> None:
    # A version is equal before and after its time of modification becomes a validator.
    url = origin.put("/data", DATA, None, age=0)
    now = origin.modified_at("/data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: now + 1)
        pickled = pickle.dumps(fs.open(url))
    assert pickle.loads(pickled).read(10) == DATA[:10]


def test_a_failed_request_does_not_mean_that_the_file_does_not_exist(
    fs: NuthatchCache, origin: Origin
) -> None:
    url = origin.put("/data", DATA)
    origin.next_statuses = [503, 503, 503]
    assert fs.size(url) == len(DATA)
    origin.next_statuses = [403, 403]
    with pytest.raises(PermissionError, match="access denied: status 403"):
        fs.open(url + "?token=hidden")
    for gone in (origin.address + "/missing", "http://127.0.0.1:1/closed"):
        with pytest.raises(OSError, match=r"http://127\.0\.0\.1") as error:
            fs.info(gone + "?token=hidden")
        assert isinstance(error.value, FileNotFoundError) == gone.endswith("missing")
        shown: BaseException | None = error.value
        while shown:
            assert "hidden" not in str(shown)
            shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


def test_bytes_that_arrived_before_a_failure_are_kept(
    fs: NuthatchCache, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, send = origin.put("/data", DATA), Handler.send

    def fail_from_some_block_on(self: Handler) -> None:
        if self.headers.get("Range") == f"bytes={15 * BLOCK}-{16 * BLOCK - 1}":
            origin.failures = 1
        send(self)

    monkeypatch.setattr(Handler, "send", fail_from_some_block_on)
    monkeypatch.setattr(http, "_PAUSE", 0.01)
    with pytest.raises(OSError, match="no response from the origin: status 503"):
        fs.cat_file(url)
    asked = origin.gets()
    assert fs.cat_file(url, 0, 8 * BLOCK) == DATA[: 8 * BLOCK]
    assert origin.gets() == asked


def test_files_do_not_show_secrets(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA) + "?token=hidden"
    file = fs.open(url)
    assert "hidden" not in f"{file!r} {file} {fs!r}"
    assert repr(file).startswith(f"<nuthatch.fs.CachedFile at {origin.address}/data?sha256=")
    pickled = pickle.dumps(file)
    origin.put("/data", DATA[::-1], '"v2"')
    with pytest.raises(nuthatch.ChangedError, match="since the file was pickled") as error:
        pickle.loads(pickled)
    assert "hidden" not in str(error.value)


def test_reads_outside_of_a_file_are_refused(fs: NuthatchCache, origin: Origin) -> None:
    file = fs.open(origin.put("/data", DATA))
    with pytest.raises(ValueError, match="expected an offset within the file, found -5"):
        file.read_at(-5, 10)
    assert file.read_at(len(DATA) + 1, 10) == b""
    file.close()
    with pytest.raises(ValueError, match="closed file"):
        file.read_at(0, 10)


async def test_open_async_of_a_target_without_open_async_raises_an_error(tmp_path: Path) -> None:
    fs = NuthatchCache("file", cache=tmp_path / "cache", asynchronous=True)
    with pytest.raises(NotImplementedError, match="opens no files for tasks"):
        await fs.open_async(str(tmp_path / "file"), "wb")
