"""redis-py: strings, numbers and bits."""

import pytest
import redis

LONG = bytes(range(256)) * 240


def test_what_is_set_is_got(r):
    assert r.set("key", "value") is True
    assert r.get("key") == b"value"
    assert r.get("nobody") is None


@pytest.mark.parametrize("key", [b"", b"\x00\r\n\xff", b"k" * 65_000], ids=["empty", "all", "long"])
def test_keys_are_bytes(r, key):
    assert r.set(key, key)
    assert r.get(key) == key
    assert r.keys() == [key]
    assert r.delete(key) == 1


def test_a_value_of_sixty_kilobytes_comes_back_whole(r):
    r.set("long", LONG)
    assert r.get("long") == LONG
    assert r.strlen("long") == len(LONG)
    assert r.getrange("long", 256, 511) == bytes(range(256))
    assert r.mget(["long"] * 20) == [LONG] * 20


def test_options_of_set(r):
    assert r.set("key", "1", xx=True) is None
    assert r.set("key", "1", nx=True, ex=100) is True
    assert r.set("key", "2", nx=True) is None
    assert r.set("key", "2", get=True, keepttl=True) == b"1"
    assert 0 < r.ttl("key") <= 100
    assert r.set("key", "3", px=50_000) and 0 < r.pttl("key") <= 50_000
    assert r.set("key", "4", exat=4_102_444_800) and r.expiretime("key") == 4_102_444_800
    assert r.set("key", "5") and r.ttl("key") == -1
    assert r.set("key", "6", ifeq="5") is True
    assert r.set("key", "7", ifeq="5") is None
    assert r.get("key") == b"6"


def test_the_older_ways_to_set(r):
    assert r.setnx("key", "1") in (True, 1)
    assert r.setnx("key", "2") in (False, 0)
    assert r.setex("key", 100, "3") and r.ttl("key") > 0
    assert r.psetex("key", 100_000, "4") and r.pttl("key") > 0
    assert r.getset("key", "5") == b"4"
    assert r.getex("key", persist=True) == b"5" and r.ttl("key") == -1
    assert r.getdel("key") == b"5" and not r.exists("key")


def test_many_keys_at_once(r):
    rows = {f"key:{n}": f"value {n}" for n in range(5000)}
    assert r.mset(rows)
    assert r.mget(list(rows) + ["nobody"]) == [v.encode() for v in rows.values()] + [None]
    assert r.dbsize() == 5000
    assert r.msetnx({"key:1": "x", "other": "y"}) in (False, 0)
    assert not r.exists("other")
    assert r.exists(*rows) == r.delete(*rows) == 5000


def test_pieces_of_a_value(r):
    assert r.append("key", "Hello") == 5
    assert r.append("key", " World") == 11
    assert r.setrange("key", 6, "Redis") == 11
    assert r.getrange("key", 0, -1) == b"Hello Redis"
    assert r.substr("key", -5, -1) == b"Redis"
    r.mset({"a": "ohmytext", "b": "mynewtext"})
    assert r.lcs("a", "b") == b"mytext"
    assert r.lcs("a", "b", len=True) == 6


def test_numbers(r):
    assert r.incr("n") == 1
    assert r.incrby("n", 41) == 42
    assert r.decr("n", 2) == 40
    assert float(r.incrbyfloat("n", 0.5)) == 40.5
    assert r.get("n") == b"40.5"
    with pytest.raises(redis.ResponseError, match="not an integer or out of range"):
        r.incr("n")
    r.set("n", 2**63 - 1)
    with pytest.raises(redis.ResponseError, match="overflow"):
        r.incr("n")
    assert r.get("n") == b"9223372036854775807"


def test_bits(r):
    assert r.setbit("bits", 7, 1) == 0
    assert r.setbit("bits", 1000, 1) == 0
    assert (r.getbit("bits", 7), r.getbit("bits", 8)) == (1, 0)
    assert r.bitcount("bits") == 2
    assert r.bitcount("bits", 0, 10, mode="BIT") == 1
    assert r.bitpos("bits", 1) == 7 and r.bitpos("bits", 1, 1) == 1000
    r.mset({"a": b"\x0f", "b": b"\xf1"})
    assert r.bitop("AND", "both", "a", "b") == 1 and r.get("both") == b"\x01"
    assert r.bitop("XOR", "one", "a", "b") == 1 and r.get("one") == b"\xfe"
    assert r.bitop("NOT", "not", "a") == 1 and r.get("not") == b"\xf0"


def test_fields_of_bits(r):
    fields = r.bitfield("field").set("u8", "#1", 200).get("u8", 8)
    assert fields.execute() == [0, 200]
    assert r.bitfield("field", "SAT").incrby("u8", 8, 100, "SAT").execute() == [255]
    assert r.bitfield("field", "FAIL").incrby("u8", 8, 1, "FAIL").execute() == [None]
    assert r.bitfield_ro("field", "u8", 8) == [255]


@pytest.mark.parametrize("decoded", [True, False])
def test_answers_are_text_where_the_client_says_so(r, decoded):
    pool = r.connection_pool
    kwargs = pool.connection_kwargs | {"decode_responses": decoded}
    with redis.ConnectionPool(pool.connection_class, **kwargs) as again:
        client = redis.Redis(connection_pool=again)
        client.set("key", "Grüße")
        assert client.get("key") == ("Grüße" if decoded else "Grüße".encode())
