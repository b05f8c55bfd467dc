"""Origins that are unavailable, and folders that cannot be opened."""

import os
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import nuthatch
from nuthatch import UrlFile
from nuthatch.chunks import Chunks, Missing, Read
from nuthatch.fs import NuthatchCache, http, recorded
from origin import Origin, serving

BLOCK = 64 << 10
DATA = os.urandom(4 * BLOCK + 123)


def fs_of(cache: Path, offline: bool = False, max_stale: float | None = None) -> NuthatchCache:
    return NuthatchCache(
        target="http",
        cache=cache,
        block_size=BLOCK,
        offline=offline,
        max_stale=max_stale,
        skip_instance_cache=True,
    )


def read_by_all(url: str, cache: Path) -> None:
    """Reads a file through both interfaces, whose blocks have different lengths."""
    assert fs_of(cache).cat_file(url) == DATA
    with nuthatch.open_url(url, cache=cache) as file:
        assert file.read() == DATA


def stale_age(file: object) -> float | None:
    raw = getattr(file, "raw", None)
    assert isinstance(raw, UrlFile)
    return raw.stale_age


def test_a_file_is_read_while_its_origin_is_unavailable(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    with nuthatch.open_url(url, cache=cache) as file:
        assert file.read() == DATA
        assert stale_age(file) is None
    requests = len(origin.requests)
    with nuthatch.open_url(url, cache=cache, offline=True) as file:
        assert file.read() == DATA
        assert stale_age(file) is not None
    assert len(origin.requests) == requests
    origin.next_statuses = [503] * 100
    with nuthatch.open_url(url, cache=cache, max_stale=3600) as file:
        assert file.read() == DATA
    assert len(origin.requests) == requests + 1
    for wrong in (-1.0, float("nan")):
        with pytest.raises(nuthatch.ArgumentError, match="max_stale: expected seconds"):
            nuthatch.open_url(url, cache=cache, max_stale=wrong)
    with pytest.raises(nuthatch.UnavailableError, match="offline") as error:
        nuthatch.open_url(origin.address + "/other", cache=cache, offline=True)
    assert error.value.code == "offline"


def test_the_filesystem_reads_while_its_target_is_unavailable(
    origin: Origin, tmp_path: Path
) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    assert fs_of(cache).cat_file(url, 0, 2 * BLOCK) == DATA[: 2 * BLOCK]
    requests = len(origin.requests)
    fs = fs_of(cache, offline=True)
    assert fs.cat_file(url, 5, BLOCK) == DATA[5:BLOCK]
    with fs.open(url) as file:
        assert file.read(2 * BLOCK) == DATA[: 2 * BLOCK]
        with pytest.raises(nuthatch.UnavailableError, match="offline: not in the cache"):
            file.read(BLOCK)
    assert (fs.exists(url), fs.info(url)["size"]) == (True, len(DATA))
    assert not fs.exists(origin.address + "/other")
    with pytest.raises(nuthatch.UnavailableError):
        fs.cat_file(origin.address + "/other")
    assert len(origin.requests) == requests
    origin.next_statuses = [503] * 100
    assert fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    with pytest.raises(OSError, match="no response from the origin"):
        fs_of(cache, max_stale=0).cat_file(url, 0, BLOCK)
    origin.next_statuses = [404] * 100
    with pytest.raises(FileNotFoundError):
        fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK)


def test_open_url_and_the_filesystem_read_stale_versions_that_the_other_recorded(
    origin: Origin, tmp_path: Path
) -> None:
    url = origin.put("/data", DATA)
    assert fs_of(tmp_path / "fs").cat_file(url) == DATA
    fs = NuthatchCache(target="http", cache=tmp_path / "url", offline=True)
    with nuthatch.open_url(url, cache=tmp_path / "url") as file:
        assert file.read() == DATA
    assert fs.cat_file(url) == DATA
    with nuthatch.open_url(url, cache=tmp_path / "fs", offline=True) as file:
        assert stale_age(file) is not None


def test_reads_work_if_the_folder_cannot_be_opened(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "file" / "cache"
    (tmp_path / "file").write_bytes(b"no folder")
    with pytest.warns(RuntimeWarning, match="reads pass through to the origin"):
        file = nuthatch.open_url(url, cache=cache)
    assert file.read() == DATA
    file.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with nuthatch.open_url(url, cache=cache) as file:
            assert file.read() == DATA
        fs = fs_of(cache)
        assert fs.cat_file(url) == DATA
        with fs.open(url) as again:
            assert again.read() == DATA


def test_one_request_is_made_before_a_stale_version_is_read(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    assert fs_of(cache).cat_file(url) == DATA
    fs = fs_of(cache, max_stale=3600)
    for status in (429, 500, 502, 503, 504):
        origin.next_statuses = [status] * 100
        requests = len(origin.requests)
        assert fs.cat_file(url) == DATA
        assert len(origin.requests) == requests + 1, status
    origin.next_statuses = []


def test_a_target_that_does_not_respond_gets_one_request_and_other_hosts_are_not_affected(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    read_by_all(url, cache)
    monkeypatch.setattr(recorded, "_CHECK_WITHIN", 0.05)
    fs = fs_of(cache, max_stale=3600)
    requests = len(origin.requests)
    origin.hold_all = threading.Event()
    try:
        for _ in range(5):
            assert fs.cat_file(url) == DATA
        with nuthatch.open_url(url, cache=cache, max_stale=3600) as file:
            assert file.read() == DATA
        assert len(origin.requests) == requests + 2, "one request of each interface"
        monkeypatch.undo()
        with serving() as other:
            there = other.put("/data", DATA)
            assert fs.cat_file(there) == DATA
            assert fs.cat_file(there) == DATA
            heads = [method for method, _, _ in other.requests if method == "HEAD"]
            assert len(heads) == 2, "the other host is not considered unavailable"
    finally:
        origin.hold_all.set()


def test_a_stale_version_is_read_while_the_origin_refuses_connections(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    read_by_all(url, cache)
    requests = len(origin.requests)
    origin.refuse()
    fs = fs_of(cache, max_stale=3600)
    for _ in range(3):
        assert fs.cat_file(url) == DATA
    with nuthatch.open_url(url, cache=cache, max_stale=3600) as file:
        assert file.read() == DATA
        assert stale_age(file) is not None
    assert len(origin.requests) == requests
    monkeypatch.setattr(http, "_PAUSE", 0)
    with pytest.raises(OSError, match="no response from the origin"):
        fs_of(cache).cat_file(url)


def test_the_filesystem_uses_a_stale_version_that_the_target_allows(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_PAUSE", 0)
    cache = tmp_path / "cache"
    allowed, refused = origin.put("/allowed", DATA), origin.put("/refused", DATA)
    origin.files["/allowed"].cache_control = "max-age=1, stale-if-error=600"
    origin.files["/refused"].cache_control = "stale-if-error=600, must-revalidate"
    for url in (allowed, refused):
        read_by_all(url, cache)
    origin.next_statuses = [503] * 100
    assert fs_of(cache).cat_file(allowed) == DATA
    with nuthatch.open_url(allowed, cache=cache) as file:
        assert (file.read(), stale_age(file) is None) == (DATA, False)
    with pytest.raises(OSError, match="no response from the origin"):
        fs_of(cache).cat_file(refused)
    # The reader's `max_stale` takes precedence.
    with pytest.raises(OSError, match="no response from the origin"):
        fs_of(cache, max_stale=0).cat_file(allowed)
    origin.next_statuses = []
    # The origin no longer allows stale versions.
    origin.files["/allowed"].cache_control = None
    assert fs_of(cache).cat_file(allowed) == DATA
    origin.next_statuses = [503] * 100
    with pytest.raises(OSError, match="no response from the origin"):
        fs_of(cache).cat_file(allowed)


def test_the_filesystem_uses_a_stale_version_that_open_url_recorded(
    origin: Origin, tmp_path: Path
) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    origin.files["/data"].cache_control = "stale-if-error=600"
    with nuthatch.open_url(url, cache=cache) as file:
        assert file.read() == DATA
    fs = NuthatchCache("http", cache=cache, skip_instance_cache=True)
    origin.next_statuses = [503] * 100
    assert fs.cat_file(url) == DATA


class Allowing(MemoryFileSystem):  # type: ignore[misc]
    """A target other than HTTP that allows stale versions while it is unavailable."""

    protocol = "allowing"
    store: dict[str, Any] = {}  # noqa: RUF012 - as the class that it derives from
    is_unavailable = False
    requests = 0

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        type(self).requests += 1
        if self.is_unavailable:
            raise ConnectionRefusedError(path)
        details = {"etag": "v1", "cacheControl": "stale-if-error=600"}
        return {**super().info(path, **kwargs), **details}


def test_a_target_that_is_not_http_allows_stale_versions_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Allowing()
    target.pipe_file("/data", DATA)
    fs = NuthatchCache(fs=target, cache=tmp_path / "cache", skip_instance_cache=True)
    assert fs.cat_file("/data") == DATA
    monkeypatch.setattr(Allowing, "is_unavailable", True)
    requests = Allowing.requests
    for _ in range(3):
        assert fs.cat_file("/data") == DATA
    assert Allowing.requests == requests + 1


def test_reading_a_stale_version_does_not_make_it_younger(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    origin.files["/data"].cache_control = "stale-if-error=600"
    assert fs_of(cache).cat_file(url) == DATA
    with Chunks(cache) as chunks:
        before = chunks._metadata(url)
        assert before is not None
        assert before[1:] == (len(DATA), before[2], 600)
        origin.next_statuses = [503] * 100
        assert fs_of(cache, max_stale=3600).cat_file(url) == DATA
        assert fs_of(cache, offline=True).cat_file(url) == DATA
        assert chunks._metadata(url) == before


def test_a_stale_version_is_not_used_when_the_target_is_available_again(
    origin: Origin, tmp_path: Path
) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    assert fs_of(cache).cat_file(url) == DATA
    fs = NuthatchCache("http", cache=cache, max_stale=3600, max_age=3600, skip_instance_cache=True)
    origin.next_statuses = [503]
    assert fs.cat_file(url, 0, 100) == DATA[:100]
    origin.put("/data", DATA[::-1], etag='"v2"')
    assert fs.cat_file(url, 0, 100) == DATA[::-1][:100]


@pytest.mark.parametrize("status", [408, 425, 529])
def test_a_rejected_request_does_not_mean_that_the_origin_is_unavailable(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    # The pauses together are longer than the maximum time of a request for the version.
    monkeypatch.setattr(http, "_PAUSE", 0.15)
    assert recorded._CHECK_WITHIN < 0.15 * (1 + 2 + 4 + 8) * 0.5
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    assert fs_of(cache).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    # The request is retried, as after any transient failure.
    origin.next_statuses = [status]
    assert fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    assert not origin.next_statuses
    origin.next_statuses = [status] * 100
    with pytest.raises(OSError, match=f"the origin responded with {status}"):
        fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK)
    requests = len(origin.requests)
    # The origin rejects a request and is unavailable after that.
    origin.next_statuses = [status] + [503] * 100
    assert fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    assert len(origin.requests) == requests + 2
    origin.next_statuses = []


def test_an_origin_that_rejects_head_gets_another_request_for_the_version(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_PAUSE", 0)
    url = origin.put("/data", DATA)
    for number, status in enumerate((403, 404, 405, 500, 501)):
        fs = fs_of(tmp_path / str(number))
        origin.next_statuses = [status]
        assert fs.cat_file(url) == DATA
        assert not origin.next_statuses


def put(cache: Chunks, key: str, data: bytes = b"data") -> str | None:
    """Puts a chunk, and returns why it was not kept."""
    return cache.put(key, 0, 1, [0, len(data)], data).not_kept


def test_a_folder_that_was_removed_is_created_again_with_one_warning(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with Chunks(path, limit=64 << 20, share_with_group=True):
        pass
    with Chunks(path) as cache:
        put(cache, "before")
        assert isinstance(cache.get("before", 0, 1), Read)
        blocks = cache.blocks("https://host/file", '"v1"', 2000, 1000)
        shutil.rmtree(path)
        # A read does not create the folder again. Open files can still be read.
        assert isinstance(cache.get("before", 0, 1), Read)
        assert not path.exists()
        with pytest.warns(RuntimeWarning, match="was removed; it is created again, empty") as given:
            assert put(cache, "after") is None
        assert len(given) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert isinstance(cache.get("before", 0, 1), Missing)
            assert isinstance(cache.get("after", 0, 1), Read)
            # Existing `Blocks` objects use the new folder, as other processes do.
            assert blocks.put(0, b"1" * 2000).not_kept is None
            assert cache.stat().limit == 64 << 20
        with Chunks(path) as other:
            assert other.blocks("https://host/file", '"v1"', 2000, 1000).get(0, 5) == b"11111"
        assert path.stat().st_mode & 0o7777 == 0o2770


def test_a_fetch_that_began_before_the_folder_was_removed_is_stored_in_the_new_folder(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache"
    with Chunks(path, limit=64 << 20) as cache:
        blocks = cache.blocks("https://host/file", '"v1"', 1000, 1000)
        fetches = blocks.single_flight([(0, 1000)])
        shutil.rmtree(path)
        with pytest.warns(RuntimeWarning, match="was removed"):
            assert fetches.flights[0].finish(b"1" * 1000).not_kept is None
        assert blocks.get(0, 1000) == b"1" * 1000


def test_a_removed_folder_that_cannot_be_created_again_keeps_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with Chunks(path, limit=64 << 20) as cache:
        shutil.rmtree(path)
        path.write_bytes(b"a file is in the way")
        with pytest.warns(RuntimeWarning, match="removed and cannot be created again") as given:
            reasons = [put(cache, f"object {number}") for number in range(3)]
        assert all(reasons)
        assert len(given) == 1
        path.unlink()
        with pytest.warns(RuntimeWarning, match="it is created again"):
            assert put(cache, "object") is None


def test_the_filesystem_fills_a_folder_that_was_removed(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    fs = fs_of(cache)
    assert fs.cat_file(url) == DATA
    shutil.rmtree(cache)
    with pytest.warns(RuntimeWarning, match="was removed; it is created again"):
        assert fs_of(cache).cat_file(url) == DATA
    # A second read fetches the blocks that the first one read from the removed folder.
    assert fs_of(cache).cat_file(url) == DATA
    requests = len(origin.requests)
    assert fs_of(cache, offline=True).cat_file(url) == DATA
    assert len(origin.requests) == requests
