"""Behaviour that all four kinds of stores share."""

import csv
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import nuthatch
from call_modes import Store, changes, entered, keys, rows, settle
from conftest import ROOT, Server
from nuthatch.options import Bounds


async def fill(store: Store, names: list[bytes]) -> None:
    batch = nuthatch.Batch()
    for name in names:
        batch.put(name, b"=" + name)
    await settle(store.apply(batch))


async def test_missing_and_empty_values_differ(store: Store) -> None:
    await settle(store.put(b"empty", b""))
    assert await settle(store.get(b"empty")) == b""
    assert await settle(store.get(b"missing")) is None
    assert await settle(store.get_many([b"empty", b"missing", b"empty"])) == [b"", None, b""]


async def test_keys_and_values_are_any_buffer(store: Store) -> None:
    await settle(store.put(bytearray(b"key"), memoryview(b"value")))
    assert await settle(store.get(memoryview(b"key"))) == b"value"


async def test_text_is_refused_with_what_to_do(store: Store) -> None:
    with pytest.raises(TypeError, match=r"expected bytes, found str: encode it"):
        await settle(store.get("key"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected bytes, found str: encode it"):
        await settle(store.put(b"key", "value"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"prefix: expected bytes, found str"):
        store.scan(prefix="key")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected bytes, found int"):
        await settle(store.delete(7))  # type: ignore[arg-type]


async def test_unknown_and_contradicting_arguments_are_refused(store: Store) -> None:
    with pytest.raises(TypeError, match=r"scan\(\) got an unexpected keyword argument 'form'"):
        store.scan(form=b"a")  # type: ignore[call-arg]
    with pytest.raises(nuthatch.ArgumentError, match=r"one of from_ and after, found both"):
        store.scan(from_=b"a", after=b"b")
    with pytest.raises(nuthatch.ArgumentError, match=r"expected one of absent=True.*found none"):
        await settle(store.put_if(b"a", b"b"))
    with pytest.raises(nuthatch.ArgumentError, match=r"found several"):
        await settle(store.put_if(b"a", b"b", absent=True, version=1))
    with pytest.raises(ValueError, match=r"ttl: expected seconds, found -1"):
        await settle(store.put(b"a", b"b", ttl=-1))


async def test_a_network_filesystem_is_allowed_by_an_option(tmp_path: Path) -> None:
    # On a local filesystem the option changes nothing.
    for allow in (False, True):
        with nuthatch.open(tmp_path / "store", allow_network_filesystem=allow) as waiting:
            waiting.put(b"key", b"value")
        async with nuthatch.aio.open(
            tmp_path / "store", allow_network_filesystem=allow
        ) as asynchronous:
            assert await asynchronous.get(b"key") == b"value"
    with pytest.raises(TypeError, match=r"allow_network_filesystem"):
        nuthatch.open(tmp_path / "store", allow_network_filesystem="yes")  # type: ignore[arg-type]


async def test_keys_have_bounds(store: Store) -> None:
    for key in (b"", b"k" * 512):
        with pytest.raises(nuthatch.ArgumentError) as error:
            await settle(store.put(key, b"value"))
        assert error.value.code == "length"
        assert f"found {len(key)}" in str(error.value)
    await settle(store.put(b"k" * 511, b"value"))
    assert await settle(store.get(b"k" * 511)) == b"value"
    assert await settle(store.get(b"")) is None


def bounds_of(start: str, end: str) -> Bounds:
    """Returns bounds from the format that `testdata/store/README.md` describes."""
    if start.endswith("*"):
        return {"prefix": start[:-1].encode()}
    bounds: Bounds = {}
    if start.startswith("["):
        bounds["from_"] = start[1:].encode()
    elif start.startswith("("):
        bounds["after"] = start[1:].encode()
    if end.endswith("]"):
        bounds["to"] = end[:-1].encode()
    elif end.endswith(")"):
        bounds["before"] = end[:-1].encode()
    return bounds


async def test_ranges_are_those_of_all_languages(store: Store) -> None:
    await fill(store, [b"b", b"ba", b"bb", b"d", b"da", b"f"])
    with (ROOT / "testdata/store/ranges.csv").open(newline="") as table:
        cases = list(csv.DictReader(table))
    assert len(cases) > 700
    async with entered(store.read()) as transaction:
        for case in cases:
            bounds = bounds_of(case["start"], case["end"])
            expected = case["keys"].encode().split()
            options: dict[str, Any] = {"reverse": case["direction"] == "backward", **bounds}
            if case["limit"]:
                options["limit"] = int(case["limit"])
            else:
                assert await settle(store.count(**bounds)) == len(expected), case
            assert await keys(store.scan(**options)) == expected, case
            assert await keys(transaction.scan(**options)) == expected, case


async def test_a_scan_has_all_that_was_there_in_batches(store: Store) -> None:
    names = [b"%05d" % n for n in range(10_000)]
    await fill(store, names)
    wanted = [(name, b"=" + name) for name in names]
    assert await rows(store.scan(batch_bytes=10_000)) == wanted
    assert await rows(store.scan(reverse=True)) == wanted[::-1]
    assert await rows(store.scan(keys_only=True)) == [(name, b"") for name in names]
    assert await rows(store.scan_parallel(2, ordered=True)) == wanted
    assert sorted(await rows(store.scan_parallel(2))) == wanted
    async with entered(store.read()) as transaction:
        assert await rows(transaction.scan(batch_bytes=10_000)) == wanted


async def test_a_batch_is_a_sequence(store: Store) -> None:
    await fill(store, [b"a", b"b", b"c"])
    scan = store.scan()
    batch = await anext(scan) if isinstance(scan, nuthatch.AsyncScan) else next(scan)
    assert len(batch) == 3
    assert batch[0] == (b"a", b"=a")
    assert batch[-1] == (b"c", b"=c")
    assert list(batch) == batch.to_list() == list(zip(batch.keys(), batch.values(), strict=True))
    assert (b"b", b"=b") in list(batch)
    assert bytes(batch.key_view(1)) == b"b"
    assert bytes(batch.value_view(-1)) == b"=c"
    assert batch.value_view(0).readonly
    for index in (3, -4):
        with pytest.raises(IndexError):
            batch[index]


async def test_writes_with_a_condition(store: Store) -> None:
    assert await settle(store.put_if(b"key", b"1", absent=True))
    assert not await settle(store.put_if(b"key", b"2", absent=True))
    assert not await settle(store.put_if(b"key", b"2", equals=b"0"))
    assert await settle(store.put_if(b"key", b"2", equals=b"1"))
    assert await settle(store.put_if(b"key", b"", present=True))
    assert await settle(store.put_if(b"key", b"3", equals=b""))
    assert not await settle(store.delete_if(b"key", equals=b"2"))
    assert await settle(store.delete_if(b"key", equals=b"3"))
    assert await settle(store.get(b"key")) is None


async def test_versions_and_expiry_are_for_stamped_tables(store: Store) -> None:
    table = await settle(store.table("stamped", stamped=True))
    now = time.time()
    written = await settle(table.put(b"key", b"1", ttl=1000))
    entry = await settle(table.entry(b"key"))
    assert entry is not None
    assert entry.value == b"1"
    assert entry.version == written.sequence
    assert entry.expires_at is not None
    assert now + 999 < entry.expires_at < now + 1060
    assert not await settle(table.put_if(b"key", b"2", version=written.sequence + 1))
    assert await settle(table.put_if(b"key", b"2", version=written.sequence))
    await settle(table.put(b"past", b"1", expires_at=now - 1))
    assert await settle(table.get(b"past")) is None
    with pytest.raises(nuthatch.ArgumentError, match="plain"):
        await settle(store.put(b"key", b"1", ttl=1))
    plain = await settle(store.table("plain"))
    await settle(plain.put(b"key", b"1"))
    entry = await settle(plain.entry(b"key"))
    assert entry is not None
    assert (entry.version, entry.expires_at) == (None, None)


async def test_deleting_tells_what_was_there(store: Store) -> None:
    await fill(store, [b"a", b"b", b"c", b"d"])
    assert await settle(store.delete(b"a"))
    assert not await settle(store.delete(b"a"))
    assert await settle(store.delete_range(from_=b"b", before=b"d")) == 2
    assert await keys(store.scan()) == [b"d"]
    assert await settle(store.delete_range()) == 1


async def test_tables_are_made_or_found(store: Store) -> None:
    table = await settle(store.table("made", stamped=False))
    await settle(table.put(b"key", b"made"))
    assert await settle(store.get(b"key")) is None
    found = await settle(store.table("made", create=False))
    assert (found.name, await settle(found.get(b"key"))) == ("made", b"made")
    tables = await settle(store.tables())
    assert tables["made"] is False
    with pytest.raises(nuthatch.ArgumentError) as error:
        await settle(store.table("made", stamped=True))
    assert error.value.code == "table"


async def test_a_batch_happens_as_a_whole_or_not_at_all(store: Store) -> None:
    other = await settle(store.table("other"))
    batch = nuthatch.Batch().put(b"a", b"1").put(b"b", b"2", table=other).delete(b"c")
    assert len(batch) == 3
    await settle(store.apply(batch))
    assert await settle(store.get(b"a")) == b"1"
    assert await settle(other.get(b"b")) == b"2"
    refused = nuthatch.Batch().put(b"a", b"3").check(b"x", present=True).delete_range()
    with pytest.raises(nuthatch.ConditionError) as error:
        await settle(store.apply(refused))
    assert (error.value.code, error.value.write) == ("condition-unmet", 1)
    assert await settle(store.get(b"a")) == b"1"


async def test_a_read_transaction_stays_as_it_was(store: Store) -> None:
    await fill(store, [b"a", b"b"])
    other = await settle(store.table("other"))
    async with entered(store.read()) as transaction:
        assert await settle(transaction.get(b"a")) == b"=a"
        await settle(store.put(b"a", b"changed"))
        await settle(store.put(b"c", b"new"))
        assert await settle(transaction.get(b"a")) == b"=a"
        assert await settle(transaction.get_many([b"b", b"c"])) == [b"=b", None]
        assert await settle(transaction.get(b"a", table=other)) is None
        assert await keys(transaction.scan()) == [b"a", b"b"]
        assert await settle(transaction.count(from_=b"b")) == 1
        before = await settle(transaction.sequence())
    async with entered(store.read()) as transaction:
        assert await settle(transaction.get(b"a")) == b"changed"
        assert await settle(transaction.sequence()) == before + 2
    with pytest.raises(nuthatch.ClosedError):
        await settle(transaction.get(b"a"))


async def test_a_transaction_is_committed_or_leaves_nothing(store: Store) -> None:
    await fill(store, [b"a", b"b"])
    other = await settle(store.table("other"))
    async with entered(store.write()) as txn:
        assert await settle(txn.get(b"a")) == b"=a"
        await settle(txn.check(b"a", equals=b"=a"))
        await settle(txn.put(b"a", b"1"))
        await settle(txn.put(b"key", b"other", table=other))
        await settle(txn.put_many([(b"c", b"1"), (b"d", b"2")]))
        await settle(txn.delete(b"b"))
    assert await rows(store.scan()) == [(b"a", b"1"), (b"c", b"1"), (b"d", b"2")]
    assert await settle(other.get(b"key")) == b"other"

    class CauseError(Exception):
        pass

    with pytest.raises(CauseError):
        async with entered(store.write()) as txn:
            await settle(txn.put(b"a", b"lost"))
            raise CauseError
    with pytest.raises(nuthatch.ConditionError) as error:
        async with entered(store.write()) as txn:
            await settle(txn.put(b"a", b"lost"))
            await settle(txn.check(b"a", absent=True))
    assert error.value.write == 1
    async with entered(store.write()) as txn:
        await settle(txn.put(b"a", b"lost"))
        await settle(txn.abort())
    assert await settle(store.get(b"a")) == b"1"
    async with entered(store.write()) as txn:
        await settle(txn.delete_range(from_=b"c"))
        written = await settle(txn.commit())
    assert written.deleted == 2
    with pytest.raises(nuthatch.ClosedError):
        await settle(txn.put(b"a", b"late"))


async def test_a_watch_goes_on_where_another_was(store: Store) -> None:
    async with entered(store.read()) as transaction:
        start = await settle(transaction.sequence())
    await settle(store.put(b"user:1", b"Ada"))
    await settle(store.put(b"other", b"x"))
    await settle(store.delete(b"user:1"))
    async with entered(store.watch(since=start, prefix=b"user:")) as watch:
        seen: list[nuthatch.Change] = []
        while len(seen) < 2:
            seen += await changes(watch)
        first, last = seen
        assert (first.operation, first.table, first.key, first.value) == (
            "put",
            "default",
            b"user:1",
            b"Ada",
        )
        assert (last.operation, last.value, last.sequence) == ("delete", None, start + 3)
        assert watch.sequence == last.sequence
    async with entered(store.watch(since=first.sequence)) as watch:
        assert (await changes(watch))[0].key == b"other"
    async with entered(store.watch()) as watch:
        await settle(store.put(b"later", b""))
        change = (await changes(watch))[0]
        assert (change.key, change.value) == (b"later", b"")
    with pytest.raises(nuthatch.WatchError) as error:
        async with entered(store.watch(since=start + 1_000_000)) as watch:
            await changes(watch)
    assert error.value.code == "ahead"


async def test_figures_and_copies(store: Store, tmp_path: Path) -> None:
    await fill(store, [b"a", b"b", b"c"])
    stat = await settle(store.stat())
    assert stat.tables["default"].entries == 3
    assert stat.file_bytes > 0
    assert stat.oldest_change is not None
    await settle(store.backup(tmp_path / "copy", compact=True))
    mode = (tmp_path / "copy" / "data.mdb").stat().st_mode
    assert mode & 0o777 == 0o600, "its user alone can read it"
    with nuthatch.open(tmp_path / "copy", read_only=True) as copy:
        assert copy.count() == 3
        with pytest.raises(nuthatch.AccessError):
            copy.put(b"a", b"b")
    assert nuthatch.verify(tmp_path / "copy").entries >= 3
    with pytest.raises(nuthatch.Error) as error:
        await settle(store.backup(tmp_path / "copy"))
    assert error.value.code == "io"
    assert str(tmp_path / "copy") in str(error.value)


async def test_a_damaged_page_is_an_error_of_every_read(
    store: Store, server: Server, tmp_path: Path
) -> None:
    names = [b"damaged-%03d" % number for number in range(200)]
    await fill(store, names)
    is_remote = store.place.startswith("grpc://")
    data = (server.folder if is_remote else Path(store.place)) / "data.mdb"
    whole = data.read_bytes()
    pages = [whole[at : at + 4096] for at in range(0, len(whole), 4096)]
    leaves = [n for n, page in enumerate(pages) if page[10] == 2 and b"damaged-" in page]
    with data.open("r+b") as file:
        for leaf in leaves:
            # The bounds of the free space in the page.
            file.seek(leaf * 4096 + 12)
            file.write(b"\xf0" * 4)
    reads: dict[str, Callable[[], Awaitable[object]]] = {
        "scan": lambda: rows(store.scan()),
        "reverse scan": lambda: rows(store.scan(reverse=True)),
        "scan of a range": lambda: rows(store.scan(prefix=b"damaged-1")),
        "get": lambda: settle(store.get(names[150])),
        "get_many": lambda: settle(store.get_many(names)),
        "backup": lambda: settle(store.backup(tmp_path / "copy")),
    }
    try:
        for name, read in reads.items():
            with pytest.raises(nuthatch.Error) as error:
                await read()
            assert error.value.code == "corrupt", name
            assert "data.mdb: at byte " in str(error.value), name
    finally:
        with data.open("r+b") as file:
            for leaf in leaves:
                file.seek(leaf * 4096 + 12)
                file.write(pages[leaf][12:16])
    assert await keys(store.scan()) == names


async def test_what_needs_the_folder_says_so(store: Store) -> None:
    if store.place.startswith("grpc://"):
        with pytest.raises(nuthatch.ArgumentError, match="verify needs the folder of the store"):
            await settle(store.verify())
    else:
        verified = await settle(store.verify())
        assert verified.pages >= 2


async def test_a_closed_store_says_so(store: Store) -> None:
    table = await settle(store.table("other"))
    await settle(store.close())
    await settle(store.close())
    for closed in (store, table):
        with pytest.raises(nuthatch.ClosedError) as error:
            await settle(closed.get(b"key"))
        assert error.value.code == "closed"
        with pytest.raises(nuthatch.ClosedError):
            await rows(closed.scan())
        with pytest.raises(nuthatch.ClosedError):
            await settle(closed.put(b"key", b"value"))
