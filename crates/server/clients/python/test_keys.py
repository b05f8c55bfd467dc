"""redis-py: keys, their expiry, and scans."""

import time

import pytest
import redis


def test_keys_move_and_copy(r):
    r.set("a", "1", ex=100)
    assert r.rename("a", "b") and r.get("b") == b"1" and r.ttl("b") > 0
    r.set("c", "3")
    assert r.renamenx("b", "c") in (False, 0)
    assert r.copy("b", "d") and r.ttl("d") > 0
    assert not r.copy("b", "c")
    assert r.copy("b", "c", replace=True) and r.get("c") == b"1"
    assert sorted(r.keys()) == [b"b", b"c", b"d"]
    assert r.randomkey() in (b"b", b"c", b"d")
    assert (r.type("b"), r.type("nobody")) == (b"string", b"none")
    assert r.touch("b", "c", "nobody") == 2
    assert r.unlink("b", "c", "nobody") == 2
    with pytest.raises(redis.ResponseError, match="no such key"):
        r.rename("nobody", "somebody")


def test_expiry(r):
    r.set("key", "value")
    assert (r.ttl("key"), r.ttl("nobody")) == (-1, -2)
    assert r.expire("key", 100) and 0 < r.ttl("key") <= 100
    assert not r.expire("key", 50, gt=True)
    assert r.expire("key", 50, lt=True)
    assert not r.expire("key", 70, nx=True)
    assert r.pexpire("key", 70_000, xx=True) and 0 < r.pttl("key") <= 70_000
    assert r.expireat("key", 4_102_444_800) and r.expiretime("key") == 4_102_444_800
    assert r.pexpireat("key", 4_102_444_800_123) and r.pexpiretime("key") == 4_102_444_800_123
    assert r.persist("key") and r.ttl("key") == -1
    assert r.expireat("key", 1) and r.get("key") is None


def test_a_key_is_gone_when_its_time_is_over(r):
    r.set("key", "value", px=1)
    deadline = time.monotonic() + 60
    while r.get("key") is not None:
        assert time.monotonic() < deadline, "still there after a minute"
    assert r.ttl("key") == -2 and not r.exists("key")


def test_a_scan_finds_every_key_once(r):
    rows = {f"scan:{n}".encode(): b"x" for n in range(3000)}
    r.mset(rows)
    r.set("other", "y")
    found = list(r.scan_iter(count=100))
    assert len(found) == 3001 and set(found) == rows.keys() | {b"other"}
    assert set(r.scan_iter("scan:1?", count=500)) == {f"scan:1{n}".encode() for n in range(10)}
    assert len(list(r.scan_iter(_type="string"))) == 3001
    assert list(r.scan_iter(_type="hash")) == []
    cursor, some = r.scan(0, count=10)
    assert cursor != 0 and len(some) < 3001
    assert sorted(r.keys("scan:[0-4]")) == [f"scan:{n}".encode() for n in range(5)]


def test_what_an_object_is(r):
    r.mset({"n": "12345", "short": "abc", "long": "x" * 100})
    assert [r.object("encoding", key) for key in ("n", "short", "long")] == [
        b"int", b"embstr", b"raw",
    ]
    assert r.object("refcount", "n") == 1
    assert r.memory_usage("long") > 100
    assert r.memory_usage("nobody") is None
