"""Origins that are away, and folders that cannot be opened."""

import os
import shutil
import warnings
from pathlib import Path

import pytest

import nuthatch
from nuthatch import UrlFile
from nuthatch.chunks import Chunks, Missing, Read
from nuthatch.fs import NuthatchCache, http
from origin import Origin

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


def stale_age(file: object) -> float | None:
    raw = getattr(file, "raw", None)
    assert isinstance(raw, UrlFile)
    return raw.stale_age


def test_a_file_is_read_while_its_origin_is_away(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    with nuthatch.open_url(url, cache=cache) as file:
        assert file.read() == DATA
        assert stale_age(file) is None
    asked = len(origin.requests)
    with nuthatch.open_url(url, cache=cache, offline=True) as file:
        assert file.read() == DATA
        assert stale_age(file) is not None
    assert len(origin.requests) == asked
    origin.refusals = [503] * 100
    with nuthatch.open_url(url, cache=cache, max_stale=3600) as file:
        assert file.read() == DATA
    assert len(origin.requests) == asked + 1
    for wrong in (-1.0, float("nan")):
        with pytest.raises(nuthatch.ArgumentError, match="max_stale: expected seconds"):
            nuthatch.open_url(url, cache=cache, max_stale=wrong)
    with pytest.raises(nuthatch.UnavailableError, match="offline") as error:
        nuthatch.open_url(origin.address + "/other", cache=cache, offline=True)
    assert error.value.code == "offline"


def test_the_filesystem_reads_while_its_target_is_away(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    assert fs_of(cache).cat_file(url, 0, 2 * BLOCK) == DATA[: 2 * BLOCK]
    asked = len(origin.requests)
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
    assert len(origin.requests) == asked
    origin.refusals = [503] * 100
    assert fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    with pytest.raises(OSError, match="no answer to be had"):
        fs_of(cache, max_stale=0).cat_file(url, 0, BLOCK)
    origin.refusals = [404] * 100
    with pytest.raises(FileNotFoundError):
        fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK)


def test_what_one_of_them_recorded_the_other_reads(origin: Origin, tmp_path: Path) -> None:
    url = origin.put("/data", DATA)
    assert fs_of(tmp_path / "fs").cat_file(url) == DATA
    fs = NuthatchCache(target="http", cache=tmp_path / "url", offline=True)
    with nuthatch.open_url(url, cache=tmp_path / "url") as file:
        assert file.read() == DATA
    assert fs.cat_file(url) == DATA
    with nuthatch.open_url(url, cache=tmp_path / "fs", offline=True) as file:
        assert stale_age(file) is not None


def test_a_folder_that_cannot_be_opened_is_done_without(origin: Origin, tmp_path: Path) -> None:
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


def test_a_complaint_about_the_request_does_not_mean_that_the_origin_is_away(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_PAUSE", 0)
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    assert fs_of(cache).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    for status in (408, 425, 529):
        # It is repeated, as all that may pass.
        origin.refusals = [status]
        assert fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
        assert not origin.refusals
        origin.refusals = [status] * 100
        with pytest.raises(OSError, match=f"the origin answered {status}"):
            fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK)
    for status in (429, 500, 502, 503, 504):
        origin.refusals = [status] * 100
        assert fs_of(cache, max_stale=3600).cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    origin.refusals = []


def put(cache: Chunks, key: str, data: bytes = b"data") -> str | None:
    """Put a chunk, and tell why it was not kept."""
    return cache.put(key, 0, 1, [0, len(data)], data).not_kept


def test_a_folder_that_was_removed_is_made_again_with_one_warning(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with Chunks(path, limit=64 << 20, share_with_group=True):
        pass
    with Chunks(path) as cache:
        put(cache, "before")
        assert isinstance(cache.get("before", 0, 1), Read)
        blocks = cache.blocks("https://host/file", '"v1"', 2000, 1000)
        shutil.rmtree(path)
        # What is read makes nothing; what is open can still be read.
        assert isinstance(cache.get("before", 0, 1), Read)
        assert not path.exists()
        with pytest.warns(RuntimeWarning, match="was removed; it is made again, empty") as given:
            assert put(cache, "after") is None
        assert len(given) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert isinstance(cache.get("before", 0, 1), Missing)
            assert isinstance(cache.get("after", 0, 1), Read)
            # Objects that were made before use the new folder, as other processes do.
            assert blocks.put(0, b"1" * 2000).not_kept is None
            assert cache.stat().limit == 64 << 20
        with Chunks(path) as other:
            assert other.blocks("https://host/file", '"v1"', 2000, 1000).get(0, 5) == b"11111"
        assert path.stat().st_mode & 0o7777 == 0o2770


def test_a_claim_in_a_folder_that_was_removed_is_kept_in_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with Chunks(path, limit=64 << 20) as cache:
        blocks = cache.blocks("https://host/file", '"v1"', 1000, 1000)
        claim = blocks.claim([(0, 1000)])
        shutil.rmtree(path)
        with pytest.warns(RuntimeWarning, match="was removed"):
            assert claim.mine[0].finish(b"1" * 1000).not_kept is None
        assert blocks.get(0, 1000) == b"1" * 1000


def test_a_removed_folder_that_cannot_be_made_again_keeps_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with Chunks(path, limit=64 << 20) as cache:
        shutil.rmtree(path)
        path.write_bytes(b"a file is in the way")
        with pytest.warns(RuntimeWarning, match="removed and cannot be made again") as given:
            reasons = [put(cache, f"object {number}") for number in range(3)]
        assert all(reasons)
        assert len(given) == 1
        path.unlink()
        with pytest.warns(RuntimeWarning, match="it is made again"):
            assert put(cache, "object") is None


def test_the_filesystem_fills_a_folder_that_was_removed(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    fs = fs_of(cache)
    assert fs.cat_file(url) == DATA
    shutil.rmtree(cache)
    with pytest.warns(RuntimeWarning, match="was removed; it is made again"):
        assert fs_of(cache).cat_file(url) == DATA
    # Once more, for those whose bytes came from the removed folder.
    assert fs_of(cache).cat_file(url) == DATA
    asked = len(origin.requests)
    assert fs_of(cache, offline=True).cat_file(url) == DATA
    assert len(origin.requests) == asked
