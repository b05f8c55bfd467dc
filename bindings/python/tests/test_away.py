"""Origins that are away, and folders that cannot be opened."""

import os
import warnings
from pathlib import Path

import pytest

import nuthatch
from nuthatch import UrlFile
from nuthatch.fs import NuthatchCache
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
