"""Writers: acknowledgements, failures, and full queues."""

import asyncio
import threading
from pathlib import Path

import pytest

import nuthatch
from call_modes import Store, entered, settle
from conftest import Server


async def acknowledged(ack: object) -> nuthatch.Written:
    """Waits for an acknowledgement and returns its result."""
    if isinstance(ack, nuthatch.Ack):
        return ack.result()
    assert isinstance(ack, asyncio.Future)
    written = await ack
    assert isinstance(written, nuthatch.Written)
    return written


async def test_each_write_is_acknowledged_by_itself(store: Store) -> None:
    async with entered(store.writer()) as writer:
        first = await settle(writer.put(b"a", b"1"))
        batch = nuthatch.Batch().put(b"b", b"2").delete(b"a").delete(b"missing")
        second = await settle(writer.submit(batch))
        refused = await settle(writer.submit(nuthatch.Batch().check(b"b", absent=True)))
        last = await settle(writer.delete(b"b"))
        assert (await acknowledged(first)).deleted == 0
        assert (await acknowledged(second)).deleted == 1
        with pytest.raises(nuthatch.ConditionError):
            await acknowledged(refused)
        assert (await acknowledged(last)).deleted == 1
    with pytest.raises(nuthatch.ClosedError):
        await settle(writer.put(b"a", b"1"))


async def test_what_was_submitted_is_written_when_a_writer_is_left(store: Store) -> None:
    async with entered(store.writer()) as writer:
        for n in range(3000):
            await settle(writer.put(b"%d" % n, b"value"))
        await settle(writer.flush())
        assert await settle(store.count()) == 3000
        await settle(writer.put(b"last", b"value"))
    assert await settle(store.count()) == 3001


def test_a_failure_that_nobody_asked_for_is_told_when_a_writer_is_left(
    here: nuthatch.Store,
) -> None:
    with pytest.raises(nuthatch.ArgumentError) as error, here.writer() as writer:
        writer.put(b"good", b"value")
        writer.put(b"k" * 600, b"value")
        for n in range(2000):
            writer.put(b"%d" % n, b"value")
    assert error.value.code == "length"
    assert here.count() == 2001


def test_an_acknowledgement_can_be_looked_at_and_waited_for(here: nuthatch.Store) -> None:
    with here.writer() as writer:
        with here.write() as txn:
            txn.put(b"a", b"1")
            # The write lock is taken. Another thread writes, since this one has the transaction
            # open.
            acks: list[nuthatch.Ack] = []
            thread = threading.Thread(target=lambda: acks.append(writer.put(b"b", b"2")))
            thread.start()
            thread.join()
            assert not acks[0].done()
            with pytest.raises(TimeoutError):
                acks[0].result(timeout=0.001)
        written = acks[0].result(timeout=60)
        assert acks[0].done()
        assert acks[0].result() == written
        assert here.get(b"b") == b"2"


async def test_a_full_queue_makes_tasks_wait(tmp_path: Path, server: Server) -> None:
    queue, size, count = 64 << 10, 1000, 1000
    here = nuthatch.aio.open(tmp_path / "store", durability="none")
    for opening, folder in ((here, None), (nuthatch.aio.connect(server.address), server.folder)):
        async with opening as store, store.writer(queue_bytes=queue) as writer:
            await store.delete_range()
            submitted = 0

            async def put(n: int) -> None:
                nonlocal submitted
                await writer.put(b"%d" % n, b"v" * size)
                submitted += 1

            blocking = nuthatch.open(folder) if folder else None
            write = await asyncio.to_thread(blocking.write) if blocking else store.write()
            async with entered(write):
                tasks = [asyncio.create_task(put(n)) for n in range(count)]
                for _ in range(100):
                    await store.get(b"key")
                # At most one full queue, and as many bytes again in the group that is being
                # written.
                assert submitted <= 2 * queue / size + 2
            if blocking:
                blocking.close()
            await asyncio.gather(*tasks)
            await writer.flush()
            assert submitted == await store.count() == count


async def test_cancelling_ends_waiting_for_the_turn_to_write(tmp_path: Path) -> None:
    async with nuthatch.aio.open(tmp_path / "store", durability="none") as store:

        async def write() -> None:
            async with store.write() as txn:
                await txn.put(b"lost", b"value")
                await asyncio.Event().wait()

        first, second = asyncio.create_task(write()), asyncio.create_task(write())
        for _ in range(20):
            await store.get(b"key")
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        async with asyncio.timeout(60), store.write() as txn:
            await txn.put(b"kept", b"value")
        assert [row async for batch in store.scan() for row in batch] == [(b"kept", b"value")]


async def test_whoever_writes_is_told_not_to_wait_for_himself(store: Store) -> None:
    if store.place.startswith("grpc://"):
        return
    async with entered(store.write()) as txn:
        with pytest.raises(nuthatch.Error, match="a write transaction is open here"):
            await settle(store.put(b"key", b"value"))
        with pytest.raises(nuthatch.Error, match="a write transaction is open here"):
            async with entered(store.write()):
                pass
        await settle(txn.put(b"key", b"value"))
    assert await settle(store.get(b"key")) == b"value"


async def test_the_loop_runs_while_others_write(tmp_path: Path) -> None:
    async with nuthatch.aio.open(tmp_path / "store", durability="none") as store:

        async def put() -> None:
            await store.put(b"a", b"2")

        async with store.write() as txn:
            await txn.put(b"a", b"1")
            waiting = asyncio.create_task(put())
            assert await txn.get(b"a") == b"1"
            assert await store.get(b"a") is None
            assert not waiting.done()
        await waiting
        assert await store.get(b"a") == b"2"


async def test_appending_is_in_order(here: nuthatch.Store) -> None:
    with here.write() as txn:
        txn.append_many((b"%05d" % n, b"value") for n in range(10_000))
        txn.append(b"1", b"last")
    assert here.count() == 10_001
    with pytest.raises(nuthatch.ArgumentError) as error, here.write() as txn:
        txn.append(b"0", b"too small")
    assert error.value.code == "unordered"
    assert here.count() == 10_001
