"""The filesystem over the cache returns what its target contains."""

import asyncio
import os
import pickle
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

import nuthatch
from nuthatch.fs import CachedFile, NuthatchCache
from origin import Origin
from property_settings import examples

LIMIT = 64 << 20
BLOCK = 64 << 10
DATA = os.urandom(40 * BLOCK + 12_345)


@pytest.fixture
def fs(tmp_path: Path) -> NuthatchCache:
    """Creates a cache of the HTTP server."""
    return NuthatchCache(
        target="http", cache=tmp_path / "cache", limit=LIMIT, block_size=BLOCK, merge=2 * BLOCK
    )


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[NuthatchCache]:
    """Creates a cache of a filesystem in memory."""
    yield NuthatchCache(target="memory", cache=tmp_path / "cache", limit=LIMIT, block_size=BLOCK)
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


PLACES = st.integers(0, len(DATA) + 10)
OPERATIONS = st.one_of(
    st.tuples(st.just("cat"), PLACES, PLACES),
    st.tuples(st.just("cat"), st.integers(-200_000, -1), st.none()),
    st.tuples(st.just("seek"), PLACES, st.integers(0, 300_000)),
    st.tuples(st.just("read"), st.integers(0, 300_000), st.none()),
    st.tuples(st.just("into"), st.integers(0, 300_000), st.none()),
    st.tuples(st.just("line"), st.none(), st.none()),
    st.tuples(st.just("at"), PLACES, st.integers(0, 300_000)),
)


@given(operations=st.lists(OPERATIONS, max_size=12))
@examples(40)
def test_reads_return_the_bytes_of_the_target(
    operations: list[tuple[str, int, int]], memory: NuthatchCache
) -> None:
    memory.target.pipe_file("/object", DATA)
    at = 0
    with memory.open("/object") as file:
        for operation, one, other in operations:
            match operation:
                case "cat":
                    assert memory.cat_file("/object", one, other) == DATA[one:other]
                case "seek":
                    at = min(one, len(DATA))
                    assert file.seek(at) == file.tell() == at
                case "read":
                    assert file.read(one) == DATA[at : at + one]
                    at = min(at + one, len(DATA))
                case "into":
                    buffer = bytearray(one)
                    count = file.readinto(buffer)
                    assert buffer[:count] == DATA[at : at + one]
                    at += count
                case "line":
                    end = DATA.find(b"\n", at) + 1 or len(DATA)
                    assert file.readline() == DATA[at:end]
                    at = end
                case "at":
                    assert file.read_at(one, other) == DATA[one : one + other]
        assert file.read() == DATA[at:]


def test_bytes_that_were_read_are_not_fetched_again(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    assert fs.cat_file(url, BLOCK + 1, 3 * BLOCK - 1) == DATA[BLOCK + 1 : 3 * BLOCK - 1]
    assert origin.requests[-1] == ("GET", "/data", f"bytes={BLOCK}-{3 * BLOCK - 1}")
    assert fs.cat_file(url) == DATA
    asked = origin.gets()
    with fs.open(url) as file:
        assert file.read() == DATA
        assert file.size == len(DATA)
    assert fs.cat_ranges([url] * 2, [0, -5], [10, None]) == [DATA[:10], DATA[-5:]]
    assert fs.read_block(url, 100, 200) == DATA[100:300]
    assert origin.gets() == asked
    assert fs.counts.requests == asked
    assert 0 <= fs.counts.fetched_bytes - len(DATA) <= 2 * BLOCK


def test_missing_ranges_with_small_gaps_are_fetched_by_one_request(
    fs: NuthatchCache, origin: Origin
) -> None:
    url = origin.put("/data", DATA)
    starts = [0, 2 * BLOCK, 20 * BLOCK, 20 * BLOCK + 5]
    ends = [10, 2 * BLOCK + 10, 21 * BLOCK, 21 * BLOCK + 5]
    expected = [DATA[start:end] for start, end in zip(starts, ends, strict=True)]
    assert fs.cat_ranges([url] * 4, starts, ends) == expected
    ranges = sorted(asked for method, _, asked in origin.requests if method == "GET" and asked)
    assert ranges == [f"bytes=0-{3 * BLOCK - 1}", f"bytes={20 * BLOCK}-{22 * BLOCK - 1}"]


def test_readers_of_one_missing_range_make_one_request(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    origin.hold_bodies = threading.Event()
    files = [fs.open(url) for _ in range(8)]
    asked = len(origin.requests)
    with ThreadPoolExecutor(8) as pool:
        reads = [pool.submit(file.read_at, 10, BLOCK) for file in files]
        origin.arrived.wait()
        origin.hold_bodies.set()
        assert {read.result() for read in reads} == {DATA[10 : BLOCK + 10]}
    assert len(origin.requests) == asked + 1


def test_bytes_are_fetched_ahead_of_a_sequential_reader(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    with fs.open(url) as file:
        for start in range(0, len(DATA), BLOCK * 2):
            assert file.read(BLOCK * 2) == DATA[start : start + BLOCK * 2]
    # Fewer requests than reads, since requests grow. No byte was fetched twice.
    assert origin.gets() < 12
    assert fs.counts.fetched_bytes == len(DATA)
    with fs.open(url) as file:
        for start in (30 * BLOCK, 10 * BLOCK, 20 * BLOCK):
            file.seek(start)
            file.read(10)
    assert fs.counts.fetched_bytes == len(DATA)


def test_a_reader_that_seeks_fetches_only_the_blocks_it_reads(
    fs: NuthatchCache, origin: Origin
) -> None:
    url = origin.put("/data", DATA)
    with fs.open(url) as file:
        for start in (30, 10, 20, 0):
            file.seek(start * BLOCK)
            assert file.read(BLOCK) == DATA[start * BLOCK : (start + 1) * BLOCK]
    assert fs.counts.fetched_bytes == 4 * BLOCK


def test_old_and_new_bytes_are_never_mixed(fs: NuthatchCache, origin: Origin) -> None:
    url, new = origin.put("/data", DATA), DATA[::-1]
    file = fs.open(url)
    assert file.read(10) == DATA[:10]
    origin.put("/data", new, '"v2"')
    assert file.read(10) == DATA[10:20]
    file.seek(30 * BLOCK)
    with pytest.raises(nuthatch.ChangedError, match=r'was "v1".*is "v2"') as error:
        file.read(10)
    assert error.value.code == "changed"
    assert fs.cat_file(url) == new
    with fs.open(url) as again:
        assert again.read() == new
    # The length differs although the tag is the same: an inconsistent server is detected.
    origin.put("/data", new[:-1], '"v2"')
    assert fs.cat_file(url) == new[:-1]


def test_the_version_of_a_target_without_tags_is_checked_after_each_fetch(
    memory: NuthatchCache,
) -> None:
    memory.target.pipe_file("/object", DATA)
    file = memory.open("/object")
    assert file.read(10) == DATA[:10]
    memory.target.pipe_file("/object", DATA[::-1])
    file.seek(30 * BLOCK)
    with pytest.raises(nuthatch.ChangedError):
        file.read(10)
    assert memory.cat_file("/object") == DATA[::-1]


def test_a_version_is_used_for_max_age(tmp_path: Path, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    fs = NuthatchCache(target="http", cache=tmp_path / "cache", max_age=3600)
    assert fs.cat_file(url, 0, 10) == fs.cat_file(url, 0, 10) == DATA[:10]
    assert [method for method, _, _ in origin.requests] == ["HEAD", "GET"]
    origin.put("/data", DATA[::-1], '"v2"')
    # Cached blocks are still used. The first fetch detects the change.
    assert fs.cat_file(url, 0, 10) == DATA[:10]
    assert fs.cat_file(url) == DATA[::-1]
    fs.invalidate_cache()
    assert fs.cat_file(url, 0, 10) == DATA[::-1][:10]


def test_a_file_without_a_validator_is_fetched_at_each_open(tmp_path: Path, origin: Origin) -> None:
    url = origin.put("/data", DATA, None)
    fs = NuthatchCache(target="http", cache=tmp_path / "cache", block_size=BLOCK)
    with fs.open(url) as file:
        for _ in range(2):
            file.seek(0)
            assert file.read(BLOCK) == DATA[:BLOCK]
    assert origin.gets() == 1
    origin.put("/data", DATA[::-1], None)
    with fs.open(url) as file:
        assert file.read() == DATA[::-1]
    assert fs.cat_file(url) == DATA[::-1]
    # With `unversioned="size"`, the length identifies the version.
    fs = NuthatchCache(target="http", cache=tmp_path / "cache", unversioned="size")
    assert fs.cat_file(url) == fs.cat_file(url) == DATA[::-1]
    assert fs.counts.fetched_bytes == len(DATA)


def test_times_and_weak_tags_identify_versions(fs: NuthatchCache, origin: Origin) -> None:
    for etag in (None, 'W/"weak"'):
        url = origin.put("/data", DATA, etag, age=100)
        assert fs.cat_file(url, 0, BLOCK) == DATA[:BLOCK]
        asked = origin.gets()
        assert fs.cat_file(url, 0, BLOCK) == DATA[:BLOCK]
        assert origin.gets() == asked
        origin.put("/data", DATA[::-1], etag, age=50)
        assert fs.cat_file(url, 0, BLOCK) == DATA[::-1][:BLOCK]


def test_transient_failures_are_retried(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    origin.failures = origin.cuts = 1
    assert fs.cat_file(url, 0, BLOCK) == DATA[:BLOCK]
    assert fs.counts.requests == origin.gets() == 3
    origin.failures = 100
    with pytest.raises(OSError, match="no response from the origin: status 503"):
        fs.cat_file(url, BLOCK, 2 * BLOCK)
    origin.failures = 0
    assert fs.cat_file(url, BLOCK, 2 * BLOCK) == DATA[BLOCK : 2 * BLOCK]
    with pytest.raises(FileNotFoundError):
        fs.cat_file(origin.address + "/missing")


def test_a_server_without_ranges_is_read(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    origin.ranges = False
    assert fs.cat_file(url, 5 * BLOCK, 6 * BLOCK) == DATA[5 * BLOCK : 6 * BLOCK]
    assert fs.cat_file(url) == DATA


def test_the_cache_and_errors_contain_no_secrets(
    fs: NuthatchCache, origin: Origin, tmp_path: Path
) -> None:
    url = origin.put("/data", DATA) + "?token=hidden&X-Amz-Signature={}&X-Amz-Credential=hidden"
    assert fs.cat_file(url.format("hidden1"), 0, 10) == DATA[:10]
    asked = origin.gets()
    assert fs.cat_file(url.format("hidden2"), 0, 10) == DATA[:10]
    assert origin.gets() == asked
    (found,) = fs.chunks.list()
    assert found.key.address is not None
    assert found.key.address.startswith(origin.address + "/data?sha256=")
    origin.failures = 100
    with pytest.raises(OSError, match="no response") as error:
        fs.cat_file(url.format("hidden3"), BLOCK, BLOCK + 1)
    assert "hidden" not in str(error.value)
    for path in (tmp_path / "cache").iterdir():
        assert b"hidden" not in path.read_bytes()


def test_damaged_bytes_are_fetched_and_stored_again(tmp_path: Path, origin: Origin) -> None:
    folder, url = tmp_path / "cache", origin.put("/data", DATA)
    program = "import sys; from nuthatch.fs import NuthatchCache as C\n"
    program += "fs = C(target='http', cache=sys.argv[1]); fs.cat_file(sys.argv[2])\n"
    program += "print(fs.counts.fetched_bytes)"

    def fetched() -> int:
        command = [sys.executable, "-c", program, str(folder), url]
        return int(subprocess.run(command, check=True, capture_output=True).stdout)

    assert (fetched(), fetched()) == (len(DATA), 0)
    for path in folder.iterdir():
        found = path.read_bytes()
        if (at := found.find(DATA[:100])) >= 0:
            with path.open("r+b") as file:
                file.seek(at)
                file.write(b"damaged")
    fs = NuthatchCache(target="http", cache=folder)
    assert fs.cat_file(url) == DATA
    assert fs.counts.fetched_bytes > 0
    assert fetched() == 0


def test_bytes_that_the_cache_does_not_keep_reach_the_reader(
    tmp_path: Path, origin: Origin
) -> None:
    url = origin.put("/data", DATA)
    chunks = nuthatch.chunks.Chunks(tmp_path / "cache", limit=LIMIT, min_free=1 << 60)
    fs = NuthatchCache(target="http", cache=chunks, block_size=BLOCK)
    with fs.open(url) as file:
        assert file.read() == DATA
        file.seek(0)
        assert file.read(10) == DATA[:10]
    assert fs.cat_ranges([url], [5], [BLOCK]) == [DATA[5:BLOCK]]


def test_a_file_that_is_larger_than_the_cache_is_read(tmp_path: Path, origin: Origin) -> None:
    data = os.urandom(9 << 20)
    url, empty = origin.put("/large", data), origin.put("/empty", b"")
    fs = NuthatchCache(target="http", cache=tmp_path / "cache", limit=4 << 20)
    assert fs.cat_file(url) == data
    assert fs.chunks.stat().used <= 4 << 20
    with fs.open(url) as file:
        assert b"".join(iter(lambda: file.read(100_000), b"")) == data
    assert fs.cat_file(empty) == b""
    with fs.open(empty) as file:
        assert file.read() == file.read1() == file.peek() == file.readline() == b""


def test_writes_go_to_the_target(tmp_path: Path) -> None:
    fs = NuthatchCache(target="file", cache=tmp_path / "cache", max_age=3600)
    folder = tmp_path / "files"
    fs.makedirs(folder / "inner")
    name = str(folder / "inner/a")
    for content in (b"one", b"two", b"three"):
        fs.pipe_file(name, content)
        assert fs.cat_file(name) == Path(name).read_bytes() == content
    with fs.open(name, "w") as text:
        text.write("text\n")
    with fs.open(name, "r") as text:
        assert text.read() == "text\n"
    with fs.open(name, "ab") as file:
        file.write(b"more")
    fs.cp_file(name, name + "2")
    fs.mv(name + "2", name + "3")
    assert fs.cat_file(name + "3") == b"text\nmore"
    fs.put_file(__file__, name)
    assert fs.cat_file(name) == Path(__file__).read_bytes()
    assert sorted(fs.find(folder)) == [name, name + "3"]
    assert abs(fs.modified(name).timestamp() - Path(name).stat().st_mtime) < 1e-3
    fs.rm(folder, recursive=True)
    assert not fs.exists(name)


def test_get_file_copies_files_through_the_cache(
    fs: NuthatchCache, origin: Origin, tmp_path: Path
) -> None:
    url = origin.put("/data", DATA)
    for _ in range(2):
        fs.get(url, str(tmp_path / "copies/data"))
        assert (tmp_path / "copies/data").read_bytes() == DATA
    assert fs.counts.fetched_bytes == len(DATA)


@pytest.mark.parametrize("form", ["nuthatch::{}", "nuthatch://{}"])
def test_urls_name_the_cache_and_the_target(form: str, origin: Origin, tmp_path: Path) -> None:
    for number in range(2):
        url = form.format(origin.put("/data", DATA))
        with fsspec.open(url, cache=str(tmp_path / "cache"), limit=LIMIT) as file:
            assert isinstance(file, CachedFile)
            assert file.read() == DATA
            assert file.full_name == f"nuthatch://{origin.address}/data"
            assert file.fs.counts.fetched_bytes == (0 if number else len(DATA))
        file.fs.clear_instance_cache()
    local = tmp_path / "file"
    local.write_bytes(b"local")
    for target in (f"file://{local}", f"/{local}"):
        with fsspec.open(form.format(target), cache=str(tmp_path / "cache")) as file:
            assert file.read() == b"local"
    options = {"target_protocol": "file", "cache": str(tmp_path / "cache")}
    with fsspec.open(f"nuthatch://{local}", **options) as file:
        assert file.read() == b"local"
    with fsspec.open(
        "zip://a::nuthatch::" + _zip(tmp_path), nuthatch={"cache": str(tmp_path / "cache")}
    ) as file:
        assert file.read() == b"zipped"


def _zip(folder: Path) -> str:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("a", b"zipped")
    return f"file://{folder}/a.zip"


async def test_tasks_read_in_event_loops_of_their_own(origin: Origin, tmp_path: Path) -> None:
    url = origin.put("/data", DATA)
    fs = NuthatchCache(target="http", cache=tmp_path / "cache", asynchronous=True)
    reads = [fs._cat_file(url, start, start + 1000) for start in range(0, 100_000, 1000)]
    assert b"".join(await asyncio.gather(*reads)) == DATA[:100_000]
    assert origin.gets() == 1
    async with await fs.open_async(url) as file:
        assert await file.read(10) == DATA[:10]
        file.seek(1000)
        assert await file.read() == DATA[1000:]
    assert [entry["size"] for entry in [await fs._info(url)]] == [len(DATA)]
    await (await fs.target.set_session()).close()


def test_a_cache_and_its_files_are_pickled(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    assert pickle.loads(pickle.dumps(fs)) == fs
    file = fs.open(url)
    file.seek(BLOCK)
    again = pickle.loads(pickle.dumps(file))
    assert again.read(10) == DATA[BLOCK : BLOCK + 10]
    pickled = pickle.dumps(file)
    origin.put("/data", DATA[::-1], '"v2"')
    with pytest.raises(nuthatch.ChangedError):
        pickle.loads(pickled)


def test_a_cache_that_was_opened_before_is_pickled_too(tmp_path: Path, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    for _ in range(2):
        # The second iteration must not reuse the filesystem of the first, whose folder is closed.
        with nuthatch.chunks.Chunks(tmp_path / "cache", limit=LIMIT) as chunks:
            fs = NuthatchCache("http", cache=chunks, block_size=BLOCK)
            assert fs.cat_file(url, 0, 10) == DATA[:10]
            again = pickle.loads(pickle.dumps(fs))
            assert again.cat_file(url, 0, 10) == DATA[:10]
    assert origin.gets() == 1


WORKER = """
import pickle, sys
file = pickle.loads(bytes.fromhex(sys.stdin.read()))
print(hash(file.read()), file.fs.counts.fetched_bytes)
"""


def test_processes_share_the_bytes_that_one_of_them_read(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    file = fs.open(url)
    file.read_at(0, 10 * BLOCK)
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    outputs = [worker.communicate(pickle.dumps(file).hex(), timeout=60)[0] for worker in workers]
    assert len({output.split()[0] for output in outputs}) == 1
    asked = origin.gets()
    assert file.read() == DATA
    assert origin.gets() == asked
    # Each block was fetched once by all processes together.
    assert sum(_length(asked) for method, _, asked in origin.requests if asked) == len(DATA)


def _length(asked: str) -> int:
    first, last = asked.removeprefix("bytes=").split("-")
    return min(int(last) + 1, len(DATA)) - int(first)


def test_a_child_made_by_fork_continues_to_read(fs: NuthatchCache, origin: Origin) -> None:
    url = origin.put("/data", DATA)
    file = fs.open(url)
    assert file.read(10) == DATA[:10]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert file.read(10) == DATA[10:20]
            file.seek(10 * BLOCK)
            assert file.read(BLOCK) == DATA[10 * BLOCK : 11 * BLOCK]
            assert fs.cat_file(url) == DATA
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    asked = origin.gets()
    assert file.read() == DATA[10:]
    assert origin.gets() == asked


def test_contradicting_targets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="found several"):
        NuthatchCache("memory", target_protocol="file", cache=tmp_path)
    with pytest.raises(ValueError, match="target: expected one that is asynchronous"):
        NuthatchCache(fsspec.filesystem("http"), cache=tmp_path, asynchronous=True)
