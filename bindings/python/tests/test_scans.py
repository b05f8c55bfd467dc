"""Begin and end of scans and of their transactions."""

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import nuthatch
from call_modes import Scan, Store, batches, entered, settle
from conftest import Server

ROWS = 20_000


@pytest.fixture
async def full(store: Store) -> Store:
    """Opens a store with many batches of rows."""
    async with entered(store.write()) as txn:
        await settle(txn.put_many((b"%08d" % n, b"value") for n in range(ROWS)))
    return store


async def until(holds: Callable[[int], bool], store: Store) -> None:
    """Waits until the number of open transactions is as expected, since threads end them later."""
    async with asyncio.timeout(30):
        while not holds((await settle(store.stat())).open_transactions):
            await asyncio.sleep(0)


async def test_nothing_is_read_before_it_is_asked_for(full: Store) -> None:
    scan = full.scan(batch_rows=10, batch_bytes=1000)
    assert (await settle(full.stat())).open_transactions == 0
    scan.close()
    assert [batch async for batch in batches(scan)] == []


async def test_a_scan_that_is_closed_ends_its_transaction(full: Store) -> None:
    scan = full.scan(batch_rows=10, batch_bytes=1000)
    kept = [await first(scan)]
    if kept[0].is_mapped:
        # A server may have sent all rows already.
        assert (await settle(full.stat())).open_transactions > 0
    scan.close()
    await until(lambda count: count == 0, full)
    # Batches that were returned before remain valid.
    assert kept[0][0] == (b"00000000", b"value")
    assert not kept[0].is_mapped


async def first(scan: Scan) -> nuthatch.RowBatch:
    """Returns the next batch of a scan, and keeps the scan open."""
    return await anext(scan) if isinstance(scan, nuthatch.AsyncScan) else next(scan)


async def test_a_scan_that_is_dropped_ends_its_transaction(full: Store) -> None:
    async for batch in batches(full.scan(batch_rows=10, batch_bytes=1000)):
        kept = batch
        break
    gc.collect()
    await until(lambda count: count == 0, full)
    assert kept[0] == (b"00000000", b"value")


@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
async def test_cancelling_a_task_ends_its_scan(
    server: Server, tmp_path: Path, remote: bool
) -> None:
    opening = (
        nuthatch.aio.connect(server.address) if remote else nuthatch.aio.open(tmp_path / "store")
    )
    async with opening as store:
        await store.delete_range()
        async with store.write() as txn:
            await txn.put_many((b"%08d" % n, b"value" * 200) for n in range(5000))
        begun, given = asyncio.Event(), []

        async def work() -> None:
            async for batch in store.scan(batch_rows=10, batch_bytes=1000):
                given.append(batch)
                begun.set()
                await asyncio.Event().wait()

        # The reference to the task keeps its frame and variables alive.
        task = asyncio.create_task(work())
        await begun.wait()
        assert (await store.stat()).open_transactions > 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda count: count == 0, store)
        assert given[0][0] == (b"00000000", b"value" * 200)


async def test_cancelling_while_a_batch_is_awaited_ends_the_scan(tmp_path: Path) -> None:
    async with nuthatch.aio.open(tmp_path / "store", durability="none", threads=1) as store:
        async with store.write() as txn:
            await txn.put_many((b"%08d" % n, b"value") for n in range(ROWS))
        scan = store.scan(batch_rows=10)
        kept = await anext(scan)
        task = asyncio.ensure_future(scan.__anext__())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda count: count == 0, store)
        assert kept[9] == (b"00000009", b"value")
        with pytest.raises(StopAsyncIteration):
            while True:
                await anext(scan)


async def test_one_scan_is_read_by_one_task_at_a_time(tmp_path: Path) -> None:
    async with nuthatch.aio.open(tmp_path / "store", durability="none") as store:
        await store.keep_changes(100)
        async with store.watch() as watch:
            waiting = asyncio.ensure_future(watch.__anext__())
            expected = "another task or thread reads this watch"
            with pytest.raises(nuthatch.ArgumentError, match=expected):
                await anext(watch)
            await store.put(b"key", b"value")
            assert (await waiting)[0].key == b"key"


async def test_a_store_that_is_closed_fails_its_scans(full: Store) -> None:
    scan = full.scan(batch_rows=10, batch_bytes=1000)
    batches_of_scan = [await first(scan), await first(scan)]
    async with entered(full.read()) as transaction:
        assert await settle(transaction.get(b"00000000")) == b"value"
        await settle(full.close())
        if not full.place.startswith("grpc://"):
            with pytest.raises(nuthatch.ClosedError):
                await settle(transaction.get(b"00000000"))
            with pytest.raises(nuthatch.ClosedError):
                [batch async for batch in batches(scan)]
            # All references to the files are released, so this process can open them again.
            assert nuthatch.open(full.place).count() == ROWS
    assert batches_of_scan[0][0] == (b"00000000", b"value")


def test_closing_under_load_fails_threads_and_nothing_else(tmp_path: Path) -> None:
    store = nuthatch.open(tmp_path / "store", durability="none")
    with store.write() as txn:
        txn.put_many((b"%08d" % n, b"value") for n in range(ROWS))
    ended: list[BaseException | None] = []
    running = threading.Barrier(7)

    def run(operation: Callable[[], object]) -> None:
        try:
            operation()
            running.wait()
            while True:
                operation()
        except nuthatch.Error as error:
            ended.append(error)
        except BaseException as error:
            ended.append(error)
            raise

    def scan() -> None:
        for batch in store.scan(batch_rows=7):
            batch.keys()

    def read() -> None:
        with store.read() as transaction:
            for batch in transaction.scan(batch_rows=1000):
                batch.to_list()

    operations: list[Callable[[], object]] = [
        scan,
        lambda: [len(batch) for batch in store.scan_parallel(2)],
        read,
        lambda: store.get(b"00000001"),
        lambda: store.put(b"key", b"value"),
        lambda: store.count(prefix=b"0000"),
    ]
    threads = [threading.Thread(target=run, args=(operation,)) for operation in operations]
    for thread in threads:
        thread.start()
    running.wait()
    store.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert [type(error) for error in ended] == [nuthatch.ClosedError] * len(operations)
    with nuthatch.open(tmp_path / "store") as again:
        assert again.count(before=b"a") == ROWS


async def test_closing_under_load_fails_tasks_and_nothing_else(tmp_path: Path) -> None:
    store = await nuthatch.aio.open(tmp_path / "store", durability="none")
    async with store.write() as txn:
        await txn.put_many((b"%08d" % n, b"value") for n in range(ROWS))
    # Fewer would let the writers below overtake the watch, which ends with `WatchError` then.
    await store.keep_changes(1_000_000)

    async def scan() -> None:
        while True:
            async for batch in store.scan(batch_rows=100):
                batch.keys()

    async def put(name: bytes) -> None:
        while True:
            await store.put(name, b"value")

    async def transact() -> None:
        while True:
            async with store.write() as txn:
                await txn.put(b"txn", b"value")

    async def watch() -> None:
        async for _ in watching:
            raise AssertionError("nothing of this table changes")

    watching = await (await store.table("other")).watch()
    operations = [scan(), scan(), put(b"a"), put(b"b"), transact(), watch()]
    tasks = [asyncio.ensure_future(operation) for operation in operations]
    for _ in range(10):
        await store.count()
    await store.close()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    assert [type(result) for result in results] == [nuthatch.ClosedError] * len(tasks)
    async with nuthatch.aio.open(tmp_path / "store") as again:
        assert await again.count(before=b"a") == ROWS
