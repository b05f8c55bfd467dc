"""pylibmc: libmemcached, in C."""

import pylibmc
import pytest
from conftest import MEMCACHE, MEMCACHE_SOCKET

SERVERS = {"tcp": f"{MEMCACHE[0]}:{MEMCACHE[1]}", "unix_socket": MEMCACHE_SOCKET}


@pytest.fixture(params=SERVERS)
def c(request):
    behaviors = {"cas": True, "tcp_nodelay": True, "remove_failed": 1}
    client = pylibmc.Client([SERVERS[request.param]], binary=False, behaviors=behaviors)
    client.flush_all()
    yield client
    client.disconnect_all()


def test_values_of_each_type(c):
    for value in ["Grüße", b"\r\n\x00", 5, True, None, {"a": (1, 2)}, "x" * 60_000]:
        assert c.set("key", value, time=1000)
        assert c.get("key", "nothing") == value
    assert c.get("nobody", "nothing") == "nothing"


def test_many_keys_at_once(c):
    rows = {f"key:{n}": n for n in range(1000)}
    assert c.set_multi(rows) == []
    assert c.get_multi([*rows, "nobody"]) == rows
    assert c.get_multi(["1", "2"], key_prefix="key:") == {"1": 1, "2": 2}
    assert c.delete_multi(list(rows)) is True
    assert c.get_multi(list(rows)) == {}


def test_each_way_to_store(c):
    assert c.add("key", "b") and not c.add("key", "x")
    assert c.replace("key", "B") and not c.replace("nobody", "x")
    assert c.append("key", "c") and c.prepend("key", "a")
    assert c.get("key") == "aBc"
    assert c.delete("key") and not c.delete("key")


def test_compare_and_set(c):
    c.set("key", "1")
    value, token = c.gets("key")
    assert value == "1"
    assert c.cas("key", "2", token) is True
    assert c.cas("key", "3", token) is False
    assert c.get("key") == "2"


def test_numbers(c):
    c.set("n", 41)
    assert c.incr("n") == 42
    assert c.decr("n", 50) == 0
    assert c.incr_multi(["n"], delta=5) is None
    assert c.get("n") == 5
    with pytest.raises(pylibmc.NotFound):
        c.incr("nobody")


def test_times(c):
    c.set("key", "value")
    assert c.touch("key", 1000) is True
    assert c.touch("nobody", 1000) is False
    assert "key" in c and "nobody" not in c


@pytest.mark.parametrize("behavior", ["no_block", "buffer_requests"])
def test_without_replies(c, behavior):
    behaviors = {behavior: True, "_noreply": True}
    other = pylibmc.Client([SERVERS["tcp"]], binary=False, behaviors=behaviors)
    rows = {f"key:{n}": n for n in range(500)}
    for key, value in rows.items():
        other.set(key, value)
    # Asking for something sends what is buffered, and what was sent before is answered first.
    assert other.get_multi(list(rows)) == rows
    assert c.get_multi(list(rows)) == rows


def test_information(c):
    c.set("key", "value")
    [(_, stats)] = c.get_stats()
    assert int(stats["curr_items"]) == 1
