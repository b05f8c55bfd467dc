"""pymemcache: memcached's text protocol."""

from contextlib import closing

import pytest
from conftest import MEMCACHE
from pymemcache import Client, PooledClient, serde
from pymemcache.exceptions import MemcacheClientError, MemcacheError, MemcacheUnknownCommandError

LONG = bytes(range(256)) * 240


def test_what_is_set_is_got(m):
    assert m.set("key", "value") is True
    assert m.get("key") == b"value"
    assert m.get("nobody", "default") == "default"
    assert m.delete("key") is True
    assert m.delete("key") is False


def test_values_are_bytes_and_may_be_long(m):
    for value in [b"", b"\r\nEND\r\n", LONG]:
        assert m.set("k" * 250, value)
        assert m.get("k" * 250) == value


def test_many_keys_at_once(m):
    rows = {f"key:{n}": f"value {n}".encode() for n in range(2000)}
    assert m.set_many(rows) == []
    assert m.get_many([*rows, "nobody"]) == rows
    with_tokens = m.gets_many(list(rows)[:5])
    assert {key: value for key, (value, _) in with_tokens.items()} == dict(list(rows.items())[:5])
    assert m.delete_many(rows) is True
    assert m.get_many(rows) == {}


def test_each_way_to_store(m):
    assert m.add("key", "b") is True
    assert m.add("key", "x") is False
    assert m.replace("nobody", "x") is False
    assert m.replace("key", "B") is True
    assert m.append("key", "c") and m.prepend("key", "a")
    assert m.append("nobody", "c") is False
    assert m.get("key") == b"aBc"


def test_compare_and_set(m):
    m.set("key", "1")
    value, token = m.gets("key")
    assert value == b"1"
    assert m.cas("key", "2", token) is True
    assert m.cas("key", "3", token) is False
    assert m.cas("nobody", "3", token) is None
    assert m.gets("nobody") == (None, None)
    assert m.get("key") == b"2"


def test_numbers(m):
    m.set("n", "41")
    assert m.incr("n", 1) == 42
    assert m.decr("n", 100) == 0
    assert m.incr("n", 2**64 - 1) == 2**64 - 1
    assert m.incr("n", 1) == 0
    assert m.incr("nobody", 1) is None
    m.set("text", "abc")
    with pytest.raises(MemcacheClientError, match="non-numeric"):
        m.incr("text", 1)


def test_times(m):
    assert m.set("gone", "value", expire=-1) and m.get("gone") is None
    assert m.set("stays", "value", expire=4_102_444_800) and m.get("stays") == b"value"
    assert m.touch("stays", 1000) is True
    assert m.touch("nobody", 1000) is False
    assert m.touch("stays", -1) and m.get("stays") is None


def test_without_replies(m):
    assert m.set("a", "1", noreply=True) is True
    m.set_many({"b": "2", "c": "3"}, noreply=True)
    m.incr("a", 1, noreply=True)
    m.append("b", "2", noreply=True)
    m.touch("c", 1000, noreply=True)
    m.delete("c", noreply=True)
    assert m.get_many(["a", "b", "c"]) == {"a": b"2", "b": b"22"}
    m.flush_all(noreply=True)
    assert m.get_many(["a", "b", "c"]) == {}


def test_objects_keep_their_flags():
    client = Client(MEMCACHE, serde=serde.CompressedSerde(), default_noreply=False)
    with closing(client):
        for value in ["text", 5, {"a": [1, 2]}, b"bytes", "long " * 500]:
            assert client.set("object", value)
            assert client.get("object") == value


def test_information(m):
    assert m.version()
    m.set("key", "value")
    m.get("key"), m.get("nobody")
    stats = m.stats()
    assert stats[b"curr_items"] == 1
    assert stats[b"limit_maxbytes"] == 256 << 20
    assert stats[b"cmd_get"] >= 2 and stats[b"get_misses"] >= 1
    assert m.stats("settings")


def test_errors(m):
    with pytest.raises(MemcacheError, match="too long"):
        m.set("k" * 251, "x")
    with pytest.raises(MemcacheUnknownCommandError):
        m.raw_command("nosuchcommand")
    assert m.set("key", "value")


def test_metacommands(m):
    assert m.raw_command("ms key 5 T1000 F7\r\nvalue") == b"HD"
    assert m.raw_command("mg key s f t") == b"HD s5 f7 t1000"
    assert m.raw_command("mg key v k O7", "e\r\n") == b"VA 5 kkey O7\r\nvalu"
    assert m.raw_command("mn") == b"MN"


def test_a_pool_of_connections():
    with closing(PooledClient(MEMCACHE, max_pool_size=4, default_noreply=False)) as pool:
        pool.flush_all()
        assert pool.set_many({str(n): str(n) for n in range(100)}) == []
        assert len(pool.get_many([str(n) for n in range(100)])) == 100
