"""Files at URLs: the bytes are right, fetched once, and shared with the filesystem."""

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nuthatch
from nuthatch import UrlFile, errors, folders
from nuthatch.fs import NuthatchCache
from origin import Origin
from property_settings import examples

DATA = os.urandom((5 << 20) + 12_345)


@pytest.fixture
def origin(origin: Origin) -> Origin:
    origin.put("/data", DATA)
    return origin


def raw(file: io.BufferedReader) -> UrlFile:
    assert isinstance(file.raw, UrlFile)
    return file.raw


def test_a_file_is_fetched_once(origin: Origin, tmp_path: Path) -> None:
    for number in range(2):
        with nuthatch.open_url(origin.address + "/data", cache=tmp_path / "cache") as file:
            assert file.read() == DATA
            assert raw(file).counts.fetched == (0 if number else len(DATA))
            assert raw(file).validator == '"v1"'
            assert raw(file).address == origin.address + "/data"
            assert raw(file).size == len(DATA)
            file.seek(-5, io.SEEK_END)
            assert file.readlines() == io.BytesIO(DATA[-5:]).readlines()


PLACES = st.integers(0, len(DATA) + 5)
OPERATIONS = st.tuples(st.sampled_from(["seek", "read", "into", "at", "line"]), PLACES)


@given(operations=st.lists(OPERATIONS, max_size=12))
@examples(30)
def test_a_file_behaves_like_a_file_in_memory(
    operations: list[tuple[str, int]], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    if not path.exists():
        path.write_bytes(DATA)
    model = io.BytesIO(DATA)
    with nuthatch.open_url(str(path), cache=tmp_path / "cache") as file:
        for operation, number in operations:
            match operation:
                case "seek":
                    assert file.seek(number) == model.seek(number)
                case "read":
                    assert file.read(number) == model.read(number)
                case "into":
                    out, expected = bytearray(number), bytearray(number)
                    assert file.readinto(out) == model.readinto(expected)
                    assert out == expected
                case "at":
                    assert raw(file).read_at(number, 1000) == DATA[number : number + 1000]
                case "line":
                    assert file.readline() == model.readline()
            assert file.tell() == model.tell()


def test_the_filesystem_finds_bytes_that_open_url_fetched(origin: Origin, tmp_path: Path) -> None:
    url = origin.address + "/data"
    with nuthatch.open_url(url, cache=tmp_path / "cache") as file:
        assert file.read() == DATA
    fs = NuthatchCache(target="http", cache=tmp_path / "cache")
    assert fs.cat_file(url) == DATA
    assert fs.counts.requests == 0


def test_files_that_are_opened_one_after_the_other_share_a_folder(
    origin: Origin, tmp_path: Path
) -> None:
    # They share the connections, too. Regression test: each file opened the folder again.
    found = []
    for _ in range(3):
        with nuthatch.open_url(origin.address + "/data", cache=tmp_path / "cache") as file:
            found.append(folders._OPEN.get(str(tmp_path / "cache")))
            assert file.read(10) == DATA[:10]
    assert found[0] is not None
    assert found == [found[0]] * 3


def test_errors_of_urls(origin: Origin, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(FileNotFoundError, match="there is no such object") as error:
        nuthatch.open_url(origin.address + "/missing", cache=cache)
    assert isinstance(error.value, nuthatch.NotFoundError)
    back = pickle.loads(pickle.dumps(errors.from_code("not-found", "it is not there", None)))
    assert (type(back), str(back), back.code) == (
        nuthatch.NotFoundError,
        "it is not there",
        "not-found",
    )
    with pytest.raises(nuthatch.ArgumentError, match="an address: expected"):
        nuthatch.open_url("gopher://host/file", cache=cache)
    with nuthatch.open_url(origin.address + "/data", cache=cache) as file:
        assert file.read(10) == DATA[:10]
        origin.put("/data", DATA[::-1], '"v2"')
        with pytest.raises(nuthatch.ChangedError):
            raw(file).read_at(4 << 20, 10)
    with pytest.raises(ValueError, match="closed file"):
        file.read()


def test_positions_outside_of_a_file_are_refused(origin: Origin, tmp_path: Path) -> None:
    with nuthatch.open_url(origin.address + "/data", cache=tmp_path / "cache") as file:
        for wrong in (lambda: raw(file).read_at(-5, 10), lambda: raw(file).seek(-5)):
            with pytest.raises(ValueError, match="expected an offset within the file, found -5"):
                wrong()
        with pytest.raises(ValueError, match="whence: expected 0, 1 or 2, found 9"):
            raw(file).seek(0, 9)
        assert raw(file).seek(5, io.SEEK_END) == len(DATA) + 5
        assert file.read() == b""


class Stop(BaseException):
    """An exception that the handler of a signal raises, as for Ctrl-C."""


def stop(*_: object) -> None:
    raise Stop


@pytest.mark.parametrize("way", ["open", "read", "at"])
def test_a_signal_interrupts_a_read_while_the_origin_does_not_respond(
    way: str, origin: Origin, tmp_path: Path
) -> None:
    url, done = origin.address + "/data", threading.Event()
    file = nuthatch.open_url(url, cache=tmp_path / "cache")
    origin.hold_bodies = held = threading.Event()
    operations: dict[str, Callable[[], object]] = {
        "open": lambda: nuthatch.open_url(url, cache=tmp_path / "cache"),
        "read": lambda: file.read(len(DATA)),
        "at": lambda: raw(file).read_at(3 << 20, 10),
    }

    def interrupt() -> None:
        origin.arrived.wait()
        os.kill(os.getpid(), signal.SIGUSR1)
        # The timeout ends the test if it fails.
        done.wait(20)
        held.set()

    before = signal.signal(signal.SIGUSR1, stop)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(Stop):
            operations[way]()
        assert not held.is_set()
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    origin.hold_bodies = None
    assert raw(file).read_at(3 << 20, 10) == DATA[3 << 20 :][:10]
    assert file.read() == DATA


def test_a_child_made_by_fork_continues_to_read(origin: Origin, tmp_path: Path) -> None:
    file = nuthatch.open_url(origin.address + "/data", cache=tmp_path / "cache")
    assert file.read(10) == DATA[:10]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert file.read(4 << 20) == DATA[10 : (4 << 20) + 10]
            assert raw(file).read_at(len(DATA) - 5, 10) == DATA[-5:]
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert file.read() == DATA[10:]
    file.close()


def test_what_was_read_is_in_the_cache_when_the_file_is_closed(
    origin: Origin, tmp_path: Path
) -> None:
    url, cache = origin.put("/data", DATA), tmp_path / "cache"
    program = """
import os, sys, nuthatch
with nuthatch.open_url(sys.argv[1], cache=sys.argv[2]) as file:
    file.read()
os._exit(0)
"""
    command = [sys.executable, "-c", program, url, str(cache)]
    subprocess.run(command, check=True, timeout=60)
    with nuthatch.open_url(url, cache=cache, offline=True) as file:
        assert file.read() == DATA
