"""The chunk cache, compared with a dictionary."""

import os
import pickle
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nuthatch
from nuthatch.chunks import Chunks, Key, Missing, Read, View, merge_gaps
from property_settings import examples

LIMIT = 64 << 20


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Chunks]:
    with Chunks(tmp_path / "cache", limit=LIMIT) as opened:
        yield opened


def content(chunk: int) -> bytes:
    """Returns the bytes of the chunk with a number."""
    return bytes([chunk]) * (chunk + 1)


def found_missing(answer: object) -> list[tuple[int, int]]:
    assert isinstance(answer, Missing)
    return answer.ranges


def gaps(present: set[int], start: int, end: int) -> list[tuple[int, int]]:
    return merge_gaps([(n, n + 1) for n in range(start, end) if n not in present], 0, end)


SPANS = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda span: (span[0], sum(span)))


@given(st.lists(st.tuples(st.sampled_from(["put", "get", "remove"]), SPANS), max_size=40))
@examples(60)
def test_the_cache_agrees_with_a_dictionary(operations: list[tuple[str, tuple[int, int]]]) -> None:
    present: set[int] = set()
    with TemporaryDirectory() as folder, Chunks(folder, limit=LIMIT) as cache:
        for operation, (start, end) in operations:
            span = [content(n) for n in range(start, end)]
            offsets = [sum(map(len, span[:n])) for n in range(len(span) + 1)]
            missing = gaps(present, start, end)
            if operation == "put":
                stored = cache.put("object", start, end, offsets, b"".join(span))
                new = len(set(range(start, end)) - present)
                assert (stored.stored, stored.present) == (new, len(span) - new)
                present.update(range(start, end))
            elif operation == "remove":
                assert cache.remove("object") == len(present)
                present.clear()
            elif missing:
                assert found_missing(cache.get("object", start, end)) == missing
                assert cache.missing("object", start, end) == missing
            else:
                read = cache.get("object", start, end)
                assert isinstance(read, Read)
                assert (read.data, read.offsets) == (b"".join(span), offsets)
                out = bytearray(len(read.data) + 1)
                assert cache.get_into("object", start, end, out) == offsets
                assert out[:-1] == read.data
                view = cache.view("object", start, end)
                assert isinstance(view, View)
                assert bytes(view) == b"".join(view.slices()) == read.data


def test_blocks_are_ranges_of_bytes(cache: Chunks) -> None:
    blocks = cache.blocks("https://host/file", '"v1"', 2500, 1000)
    assert found_missing(blocks.get(0, 10)) == found_missing(blocks.view(0, 10)) == [(0, 1000)]
    assert not blocks.get(0, 10)
    assert blocks.put(900, b"7" * 1600).stored == 2
    assert blocks.get(1000, 2500) == b"7" * 1500
    assert blocks.missing(500, 2400) == [(0, 1000)]
    assert blocks.get(990, 1010, [(0, b"1" * 1000)]) == b"1" * 10 + b"7" * 10
    assert (blocks.key.address, blocks.key.validator) == ("https://host/file", '"v1"')
    assert (blocks.key.kind, blocks.key.object_len, blocks.key.block_len) == ("blocks", 2500, 1000)
    other = cache.blocks("https://host/file", '"v2"', 2500, 1000)
    assert other.missing(1000, 2500) == [(1000, 2500)]
    with pytest.raises(nuthatch.ArgumentError, match=r"range: expected one within 0\.\.2500"):
        blocks.get(0, 2501)


def test_a_chunk_with_other_bytes_is_a_conflict(cache: Chunks) -> None:
    cache.put(b"object", 0, 1, [0, 1], b"a")
    with pytest.raises(nuthatch.ConflictError, match="chunk 0") as error:
        cache.put("object", 0, 1, [0, 1], b"b")
    assert error.value.code == "conflict"
    read = cache.get(Key("object"), 0, 1)
    assert isinstance(read, Read)
    assert read.data == b"a"


def test_invalid_arguments_raise_errors(cache: Chunks, tmp_path: Path) -> None:
    for code, offsets, data in (("offsets", [0, 2], b"a"), ("too-large", [0, LIMIT], bytes(LIMIT))):
        with pytest.raises(nuthatch.ArgumentError) as error:
            cache.put("object", 0, 1, offsets, data)
        assert error.value.code == code
    for wrong in (
        lambda: Chunks(tmp_path / "small", limit=1),
        # An invalid option is an error here, too: without the cache, each read would go to the
        # origin.
        lambda: nuthatch.open_url("http://localhost/a", cache=tmp_path / "small", limit=1),
    ):
        with pytest.raises(
            nuthatch.ArgumentError, match="limit: expected at least 4194304"
        ) as refused:
            wrong()
        assert refused.value.code == "options"
    with pytest.raises(ValueError, match="check: expected never, once or always, found"):
        Chunks(tmp_path / "small", check="often")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Chunks(tmp_path / "small", size=1)  # type: ignore[call-arg]
    cache.put("object", 0, 1, [0, 3], b"abc")
    with pytest.raises(BufferError, match="one to write to"):
        cache.get_into("object", 0, 1, b"abc")
    with pytest.raises(nuthatch.ArgumentError, match="a buffer: expected 3 bytes, found 2"):
        cache.get_into("object", 0, 1, bytearray(2))


def test_objects_are_listed_pinned_pruned_and_cleared(cache: Chunks) -> None:
    cache.put("kept", 0, 1, [0, 3], b"abc")
    cache.pin("kept")
    cache.put("object", 7, 9, [0, 1, 3], b"abc", ttl=3600)
    kept, other = sorted(cache.list(), key=lambda found: not found.pinned)
    assert (kept.key, kept.chunks, kept.bytes, kept.pinned) == (Key(b"kept"), 1, 3, True)
    assert (other.key.name, other.chunks, other.bytes) == (b"object", 2, 3)
    assert kept.expires_at is None
    assert other.expires_at is not None
    assert (cache.verify().good, cache.verify().damaged) == (3, 0)
    cache.clear()
    assert [found.key.name for found in cache.list()] == [b"kept"]
    cache.pin(kept.key, pinned=False)
    assert cache.prune(0) <= cache.stat().limit
    assert cache.list() == []
    cache.set_limit(32 << 20)
    assert cache.stat().limit == 32 << 20
    assert cache.max_put_len == 4 * cache.max_chunk_len


def test_views_outlive_eviction_and_the_cache(tmp_path: Path) -> None:
    with Chunks(tmp_path / "cache", limit=LIMIT) as cache:
        cache.put("object", 0, 1, [0, 1 << 20], bytes(range(256)) * 4096)
        view = cache.view("object", 0, 1)
        assert isinstance(view, View)
        (memory,) = view.slices()
        assert memory.readonly
        cache.clear()
    del view
    assert bytes(memory[255:258]) == b"\xff\x00\x01"
    with pytest.raises(nuthatch.ClosedError):
        cache.stat()


def test_missing_bytes_are_fetched_once(cache: Chunks) -> None:
    blocks = cache.blocks("address", "v1", 3000, 1000)
    first = blocks.single_flight([(0, 2000)])
    second = blocks.single_flight([(0, 3000)])
    assert [flight.range for flight in first.flights + second.flights] == [(0, 2000), (2000, 3000)]
    (waiter,) = second.waiters
    found: list[bytes | None] = []
    thread = threading.Thread(target=lambda: found.append(waiter.wait()))
    thread.start()
    with pytest.raises(nuthatch.ArgumentError, match="expected 1000 bytes, found 1"):
        second.flights[0].finish(b"1")
    first.flights[0].finish(b"1" * 2000)
    thread.join()
    assert found == [None]
    assert blocks.get(0, 2000) == b"1" * 2000
    assert len(blocks.single_flight([(2000, 3000)]).flights) == 1


async def test_tasks_await_a_fetch_and_a_cancelled_fetch(cache: Chunks) -> None:
    blocks = cache.blocks("address", "v1", 3000, 1000)
    fetches = blocks.single_flight([(0, 1000)])
    (waiter,) = blocks.single_flight([(0, 1000)]).waiters
    fetches.flights[0].give_up()
    assert await waiter is None
    assert len(blocks.single_flight([(0, 1000)]).flights) == 1


def test_bytes_that_the_cache_does_not_keep_reach_the_waiting_readers(tmp_path: Path) -> None:
    with Chunks(tmp_path / "cache", limit=LIMIT, min_free=1 << 60) as cache:
        blocks = cache.blocks("address", "v1", 3000, 1000)
        fetches = blocks.single_flight([(0, 1000)])
        (waiter,) = blocks.single_flight([(0, 1000)]).waiters
        assert fetches.flights[0].finish(b"1" * 1000).not_kept is not None
        assert waiter.wait() == b"1" * 1000


def test_a_folder_is_private_unless_it_is_shared_with_its_group(tmp_path: Path) -> None:
    def modes(path: Path) -> set[int]:
        return {stat.S_IMODE(entry.stat().st_mode) for entry in path.iterdir()}

    path = tmp_path / "cache"
    with Chunks(path, limit=LIMIT) as cache:
        assert cache.warnings == []
        assert not cache.stat().read_only
    assert (stat.S_IMODE(path.stat().st_mode), modes(path)) == (0o700, {0o600})
    with Chunks(path, share_with_group=True):
        assert (stat.S_IMODE(path.stat().st_mode), modes(path)) == (0o2770, {0o660})


def test_a_folder_with_access_for_other_users_causes_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    path.mkdir(mode=0o755)
    path.chmod(0o755)
    with Chunks(path, limit=LIMIT) as cache:
        (warning,) = cache.warnings
        assert "0755" in warning


def test_a_lookup_of_2_to_the_40_chunks_returns_at_once(cache: Chunks) -> None:
    cache.put("an object", 3, 4, [0, 1], b"a")
    missing = cache.get("an object", 0, 1 << 40)
    assert not missing
    assert missing.ranges == [(0, 3), (4, 1 << 40)]


def test_a_child_made_by_fork_shares_the_folder(cache: Chunks) -> None:
    blocks = cache.blocks("address", "v1", 3000, 1000)
    blocks.put(0, b"1" * 1000)
    fetches = blocks.single_flight([(1000, 2000)])
    view = blocks.view(0, 1000)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # The view of the parent is valid, and dropping it here does not affect the parent.
            assert isinstance(view, View)
            assert (bytes(view), view.is_intact) == (b"1" * 1000, True)
            del view
            assert blocks.get(0, 1000) == b"1" * 1000
            # The child does not wait for a fetch of its parent.
            assert len(blocks.single_flight([(1000, 2000)]).flights) == 1
            blocks.put(2000, b"3" * 1000)
            del fetches
            view = blocks.view(2000, 3000)
            assert isinstance(view, View)
            assert bytes(view) == b"3" * 1000
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert blocks.get(2000, 3000) == b"3" * 1000
    assert len(blocks.single_flight([(1000, 2000)]).waiters) == 1


def test_a_child_in_another_folder_opens_the_same_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Chunks("cache", limit=LIMIT) as cache:
        cache.put("object", 0, 1, [0, 1], b"a")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                (tmp_path / "other").mkdir()
                os.chdir("other")
                status = int(not cache.get("object", 0, 1))
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0


def test_a_cache_is_pickled_with_its_options(cache: Chunks, tmp_path: Path) -> None:
    cache.put("object", 0, 1, [0, 1], b"a")
    again = pickle.loads(pickle.dumps(cache))
    assert isinstance(again.get("object", 0, 1), Read)
    assert (again.path, again.stat().limit) == (cache.path, LIMIT)
    # Unpickling does not set the limit, which another process may have changed.
    cache.set_limit(2 * LIMIT)
    pickled = pickle.dumps(Chunks(tmp_path / "cache", limit=2 * LIMIT, check="always", parts=4096))
    cache.set_limit(LIMIT)
    assert b"always" in pickled
    assert pickle.loads(pickled).stat().limit == LIMIT


OTHER = """
import sys
from nuthatch.chunks import Chunks
with Chunks(sys.argv[1]) as cache:
    for n in range(int(sys.argv[2]), 400, 2):
        cache.put("object", n, n + 1, [0, 1000], b"%03d " % n * 250)
    print(cache.stat().limit)
"""


def test_processes_share_a_folder(cache: Chunks) -> None:
    commands = [[sys.executable, "-c", OTHER, str(cache.path), first] for first in "01"]
    others = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for line in commands]
    for other in others:
        assert other.communicate(timeout=60)[0] == f"{LIMIT}\n"
        assert other.returncode == 0
    read = cache.get("object", 0, 400)
    assert isinstance(read, Read)
    assert read.data == b"".join(b"%03d " % n * 250 for n in range(400))


def test_damaged_chunks_are_missing_and_can_be_stored_again(tmp_path: Path) -> None:
    folder, data = tmp_path / "cache", os.urandom(1 << 20)
    with Chunks(folder, limit=LIMIT) as cache:
        cache.put("object", 0, 1, [0, 1 << 20], data)
    for path in folder.iterdir():
        found = path.read_bytes()
        at = found.find(data[1000:1100])
        if at >= 0:
            with path.open("r+b") as file:
                file.seek(at)
                file.write(bytes([found[at] ^ 1]))
    with Chunks(folder) as cache:
        assert not cache.get("object", 0, 1)
        assert cache.stat().damaged == 1
        assert cache.put("object", 0, 1, [0, 1 << 20], data).stored == 1
        read = cache.get("object", 0, 1)
        assert isinstance(read, Read)
        assert read.data == data


TOGETHER = """
import asyncio, sys, threading
import nuthatch
from nuthatch.chunks import Chunks

cache = Chunks(sys.argv[1])
blocks = cache.blocks("address", "v1", 3000, 1000)

def stat_closed():
    try:
        cache.stat()
    except nuthatch.ClosedError:
        pass

async def waited():
    flights = blocks.single_flight([(0, 1000)]).flights
    waiters = blocks.single_flight([(0, 1000)]).waiters
    for flight in flights:
        flight.give_up()
    for waiter in waiters:
        await waiter

def await_in_a_loop():
    asyncio.run(waited())

def repeat(work, times):
    for _ in range(times):
        work()

# Python takes the interpreter's lock from a thread whenever it can.
sys.setswitchinterval(1e-6)
if sys.argv[2] == "stat_closed":
    cache.close()
work = (globals()[sys.argv[2]], int(sys.argv[3]))
threads = [threading.Thread(target=repeat, args=work, daemon=True) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize(("work", "times"), [("stat_closed", 3000), ("await_in_a_loop", 50)])
def test_threads_do_not_deadlock(work: str, times: int, tmp_path: Path) -> None:
    # Regression test for a deadlock: a thread waited for a lock of this module, and its owner for
    # the interpreter's lock.
    command = [sys.executable, "-c", TOGETHER, str(tmp_path / "cache"), work, str(times)]
    subprocess.run(command, check=True, timeout=60)


def test_chunks_that_the_index_displaces_are_counted(tmp_path: Path) -> None:
    with Chunks(tmp_path / "cache", limit=4 << 20) as cache:
        offsets = list(range(0, 50_001, 10))
        # More chunks than fit into an index of a quarter of the limit.
        displaced = sum(
            cache.put("object", first, first + 5000, offsets, bytes(50_000)).displaced
            for first in range(0, 80_000, 5000)
        )
        assert displaced > 18_000
        assert cache.stat().displaced == displaced


def test_a_lower_limit_evicts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with Chunks(path, limit=64 << 20) as cache:
        blocks = cache.blocks("https://host/file", '"v1"', 12 << 20, 1 << 20)
        assert blocks.put(0, bytes(12 << 20)).not_kept is None
        assert (cache.stat().used > 12 << 20, cache.stat().evicted) == (True, 0)
    with Chunks(path, limit=8 << 20) as cache:
        assert cache.stat().used <= 8 << 20
        before = cache.stat().evicted
        assert before > 0
        cache.set_limit(4 << 20)
        assert cache.stat().used <= 4 << 20
        assert cache.stat().evicted > before
