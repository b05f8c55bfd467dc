"""Buffers that refer to rows without a copy."""

import gc
from pathlib import Path

import pytest

import nuthatch


def test_views_outlive_everything_they_came_from(tmp_path: Path) -> None:
    store = nuthatch.open(tmp_path / "store", durability="none")
    store.put(b"key", b"v" * 100_000)
    scan = store.scan()
    batch = next(scan)
    assert batch.is_mapped
    key, value = batch.key_view(0), batch.value_view(0)
    store.put(b"key", b"w" * 100_000)
    store.close()
    del store, scan, batch
    gc.collect()
    assert (key.tobytes(), value.tobytes()) == (b"key", b"v" * 100_000)
    # The files stay open while a view refers to them.
    with pytest.raises(nuthatch.BusyError):
        nuthatch.open(tmp_path / "store")
    del key, value
    with nuthatch.open(tmp_path / "store") as again:
        assert again.get(b"key") == b"w" * 100_000


def test_a_view_keeps_its_transaction_and_a_batch_can_let_it_go(here: nuthatch.Store) -> None:
    with here.write() as txn:
        txn.put_many((b"%04d" % n, b"value") for n in range(1000))
    scan = here.scan()
    batch = next(scan)
    list(scan)
    assert here.stat().open_transactions == 1
    view = batch.value_view(0)
    batch.detach()
    assert not batch.is_mapped
    assert here.stat().open_transactions == 1
    view.release()
    del view
    assert here.stat().open_transactions == 0
    assert bytes(batch.value_view(0)) == b"value"


def test_views_cannot_be_written_to(here: nuthatch.Store) -> None:
    here.put(b"key", b"value")
    view = next(here.scan()).value_view(0)
    with pytest.raises(TypeError):
        view[0] = 0
    assert bytes(view[1:3]) == b"al"


def test_a_batch_tells_which_state_it_is_from(here: nuthatch.Store) -> None:
    here.keep_changes(10)
    here.put(b"key", b"value")
    batch = next(here.scan())
    assert batch.sequence == here.stat().sequence == 1
    assert batch.transaction == here.stat().transaction
    batch.detach()
    assert batch.sequence == 1
