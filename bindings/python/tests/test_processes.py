"""Several processes, killed processes, and other builds of LMDB."""

import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

import nuthatch
from conftest import Server

COUNTER = """
import sys, nuthatch
with nuthatch.open(sys.argv[1], durability="none") as store:
    for _ in range(200):
        while True:
            value = store.get(b"count")
            after = b"%d" % (int(value or 0) + 1)
            absent = {"absent": True} if value is None else {"equals": value}
            if store.put_if(b"count", after, **absent):
                break
"""

WRITER = """
import sys, nuthatch
store = nuthatch.open(sys.argv[1])
writer, number = store.writer(), 0
while True:
    acks = [writer.put(b"%08d" % n, b"value") for n in range(number, number + 50)]
    for ack in acks:
        ack.result()
    number += 50
    print(number, flush=True)
"""


PY_LMDB = """
import lmdb, sys
try:
    environment = lmdb.open(sys.argv[1], max_dbs=4)
except lmdb.Error as error:
    sys.exit(print("refused:", error))
with environment.begin() as txn:
    table = environment.open_db(b"default", txn=txn, create=False)
    print("found:", txn.get(b"key", db=table), flush=True)
sys.stdin.read()
"""


def python(program: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_a_store(here: nuthatch.Store) -> None:
    processes = [python(COUNTER, Path(here.place)) for _ in range(2)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert here.get(b"count") == b"400"


def test_python_and_the_command_share_a_store(here: nuthatch.Store) -> None:
    def command(name: str, *arguments: str) -> str:
        line = [os.environ["NUTHATCH_PROGRAM"], "store", name, str(here.place), *arguments]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout

    here.put(b"python", b"1")
    assert command("get", "python") == "1\n"
    command("put", "command", "2")
    assert here.get(b"command") == b"2"
    assert command("scan") == "command\t2\npython\t1\n"


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    for _ in range(2):
        process = python(WRITER, folder)
        assert process.stdout is not None
        acknowledged = 0
        for _ in range(20):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert nuthatch.verify(folder).lost_pages == 0
        with nuthatch.open(folder) as store:
            assert store.count(before=b"%08d" % acknowledged) == acknowledged


def test_py_lmdb_reads_a_closed_store_and_is_refused_an_open_one(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with nuthatch.open(folder) as store:
        store.put(b"key", b"value")
        # File locks belong to a process, so the conflict can only be tested in another one.
        refused = python(PY_LMDB, folder)
        assert refused.communicate(timeout=60)[0].startswith("refused: ")
    reader = subprocess.Popen(
        [sys.executable, "-c", PY_LMDB, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "found: b'value'\n"
    with pytest.raises(nuthatch.BusyError) as error:
        nuthatch.open(folder)
    assert error.value.code == "other-locks"
    reader.communicate(timeout=60)
    with nuthatch.open(folder) as store:
        assert store.get(b"key") == b"value"


def test_an_environment_of_py_lmdb_opens_here(tmp_path: Path) -> None:
    folder = str(tmp_path / "store")
    with lmdb.open(folder, max_dbs=4) as environment:
        table = environment.open_db(b"users")
        with environment.begin(write=True) as txn:
            txn.put(b"main", b"1")
            for n in range(1000):
                txn.put(b"%04d" % n, b"value", db=table)
    with nuthatch.open(folder, create=False) as store:
        assert store.main_table().get(b"main") == b"1"
        users = store.table("users", create=False)
        assert users.count() == 1000
        users.put(b"new", b"value")
        assert store.verify().entries >= 1002


def test_a_store_is_opened_once_in_a_process(here: nuthatch.Store) -> None:
    with pytest.raises(nuthatch.BusyError) as error:
        nuthatch.open(here.place)
    assert error.value.code == "already-open"


def in_child(body: Callable[[], object]) -> None:
    """Runs a function in a child made by `fork`, which must succeed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_child_made_by_fork_goes_on_with_its_parents_store(
    here: nuthatch.Store, server: Server, tmp_path: Path
) -> None:
    here.put(b"key", b"value")
    users = here.table("users", stamped=True)
    users.put(b"ada", b"1815")

    def child() -> None:
        os.chdir("/")
        assert here.get(b"key") == b"value"
        assert users.get(b"ada") == b"1815"
        here.put(b"child", b"wrote")
        users.put(b"grace", b"1906")
        assert [key for batch in here.scan() for key, _ in batch] == [b"child", b"key"]
        with here.write() as txn:
            txn.put(b"transaction", b"too")
        in_child(lambda: here.put(b"grandchild", b"wrote"))
        with nuthatch.open(tmp_path / "other") as other:
            other.put(b"key", b"child")
        with nuthatch.connect(server.address) as remote:
            remote.put(b"forked", b"child")
        here.close()
        with pytest.raises(nuthatch.ClosedError):
            here.get(b"key")

    in_child(child)
    assert here.get(b"key") == b"value"
    assert here.get(b"child") == b"wrote"
    assert here.get(b"grandchild") == b"wrote"
    assert here.get(b"transaction") == b"too"
    assert users.get(b"grace") == b"1906"
    with nuthatch.connect(server.address) as remote:
        assert remote.get(b"forked") == b"child"


def test_what_a_parent_began_fails_in_its_child_and_goes_on_in_the_parent(
    here: nuthatch.Store,
) -> None:
    here.keep_changes(1000)
    for number in range(100):
        here.put(b"%03d" % number, b"value")
    scan = here.scan(batch_rows=10)
    next(scan)
    with here.read() as transaction, here.writer() as writer, here.watch() as watch:
        ack = writer.put(b"written", b"by the parent")
        ack.result()

        def child() -> None:
            for operation in (
                lambda: transaction.get(b"000"),
                lambda: list(scan),
                lambda: writer.put(b"key", b"value"),
                lambda: next(watch),
            ):
                with pytest.raises(nuthatch.ClosedError, match="forked"):
                    operation()
            here.put(b"000", b"changed")

        in_child(child)
        assert transaction.get(b"000") == b"value"
        assert sum(len(batch) for batch in scan) == 90
        writer.put(b"key", b"value").result()
        assert next(change.key for change in next(watch)) == b"written"
    assert here.get(b"000") == b"changed"


def test_a_store_that_was_closed_stays_closed_in_a_child(here: nuthatch.Store) -> None:
    here.put(b"key", b"value")
    here.close()

    def child() -> None:
        with pytest.raises(nuthatch.ClosedError):
            here.get(b"key")

    in_child(child)


SHARED: list[nuthatch.Store] = []


def count_up(number: int) -> bytes | None:
    SHARED[0].put(b"%d" % number, b"%d" % os.getpid())
    return SHARED[0].get(b"key")


def test_workers_of_multiprocessing_use_the_store_of_their_parent(here: nuthatch.Store) -> None:
    here.put(b"key", b"value")
    SHARED[:] = [here]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(count_up, range(20)) == [b"value"] * 20
    assert here.count() == 21
    assert str(os.getpid()).encode() not in {here.get(b"%d" % n) for n in range(20)}


def test_a_store_is_opened_once_by_whichever_path(
    here: nuthatch.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(here.place)
    monkeypatch.chdir(tmp_path)
    for path in ("store", "link", "../" + tmp_path.name + "/store"):
        with pytest.raises(nuthatch.BusyError) as error:
            nuthatch.open(path)
        assert error.value.code == "already-open"
        with pytest.raises(nuthatch.BusyError):
            nuthatch.compact(path)
    here.close()
    with nuthatch.open("link") as again:
        again.put(b"key", b"value")


def test_compacting_needs_a_closed_store(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with nuthatch.open(folder, durability="none") as store:
        with store.write() as txn:
            txn.put_many((b"%08d" % n, b"v" * 100) for n in range(10_000))
        store.delete_range(after=b"%08d" % 99)
        with pytest.raises(nuthatch.BusyError):
            nuthatch.compact(folder)
    compacted = nuthatch.compact(folder)
    assert compacted.after_bytes < compacted.before_bytes / 10
    with nuthatch.open(folder, create=False) as store:
        assert store.count() == 100


HURRY = """
import asyncio, sys, nuthatch
async def main():
    store = await nuthatch.aio.open(sys.argv[1], durability="none")
    tasks = [asyncio.ensure_future(store.put(b"%d" % n, b"value")) for n in range(100)]
    await tasks[0]
    asyncio.ensure_future(anext(store.scan()))
asyncio.run(main())
"""


def test_an_interpreter_ends_while_threads_work(tmp_path: Path) -> None:
    for n in range(10):
        process = python(HURRY, tmp_path / f"store{n}")
        process.communicate(timeout=60)
        assert process.returncode == 0
