"""Random operations on a store have the same results as on a sorted dictionary."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nuthatch
from conftest import Server
from property_settings import examples

# A small alphabet, so that operations often use the same keys.
KEYS = st.binary(min_size=1, max_size=3).map(lambda key: bytes(byte % 4 for byte in key))
VALUES = st.binary(max_size=20)
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("put_if"), KEYS, VALUES),
    st.tuples(st.just("delete"), KEYS, VALUES),
    st.tuples(st.just("delete_range"), KEYS, KEYS),
    st.tuples(st.just("batch"), KEYS, KEYS),
    st.tuples(st.just("abort"), KEYS, VALUES),
)


@pytest.fixture(params=["here", "remote"])
def store(
    request: pytest.FixtureRequest, server: Server, tmp_path: Path
) -> Iterator[nuthatch.Store]:
    if request.param == "here":
        opened = nuthatch.open(tmp_path / "store", durability="none")
    else:
        opened = nuthatch.connect(server.address)
    with opened as store:
        yield store


def apply(
    store: nuthatch.Store, model: dict[bytes, bytes], operation: tuple[str, bytes, bytes]
) -> None:
    match operation:
        case "put", key, value:
            store.put(key, value)
            model[key] = value
        case "put_if", key, value:
            assert store.put_if(key, value, absent=True) == (key not in model)
            model.setdefault(key, value)
        case "delete", key, _:
            assert store.delete(key) == (model.pop(key, None) is not None)
        case "delete_range", start, end:
            gone = [key for key in model if start <= key < end]
            assert store.delete_range(from_=start, before=end) == len(gone)
            for key in gone:
                del model[key]
        case "batch", one, other:
            store.apply(nuthatch.Batch().put(one, b"1").put(other, b"2").delete(one))
            model[other] = b"2"
            model.pop(one, None)
        case "abort", key, value:
            with store.write() as txn:
                txn.put(key, value)
                txn.abort()


@given(operations=st.lists(OPERATIONS, max_size=30), start=KEYS, end=KEYS, limit=st.integers(0, 8))
@examples(40)
def test_a_store_is_a_sorted_dictionary(
    store: nuthatch.Store,
    operations: list[tuple[str, bytes, bytes]],
    start: bytes,
    end: bytes,
    limit: int,
) -> None:
    store.delete_range()
    model: dict[bytes, bytes] = {}
    for operation in operations:
        apply(store, model, operation)
    rows = sorted(model.items())
    assert [row for batch in store.scan() for row in batch] == rows
    within = [row for row in rows if start < row[0] <= end]
    found = store.scan(after=start, to=end, reverse=True, limit=limit)
    assert [row for batch in found for row in batch] == within[::-1][:limit]
    assert store.count(after=start, to=end) == len(within)
    assert store.get_many([start, end]) == [model.get(start), model.get(end)]
