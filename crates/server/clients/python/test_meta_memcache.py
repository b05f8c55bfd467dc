"""meta-memcache: memcached's meta commands."""

import pytest
from conftest import MEMCACHE
from meta_memcache import (
    CacheClient,
    Key,
    LeasePolicy,
    Miss,
    RecachePolicy,
    RequestFlags,
    ServerAddress,
    SetMode,
    StalePolicy,
    Success,
    Value,
    connection_pool_factory_builder,
)


@pytest.fixture
def c():
    client = CacheClient.cache_client_from_servers(
        servers=[ServerAddress(*MEMCACHE)],
        connection_pool_factory_fn=connection_pool_factory_builder(
            connection_timeout=60, recv_timeout=60
        ),
    )
    for key in ["key", "n", "Grüße und mehr", "nobody"]:
        client.delete(key)
    return client


def test_values_of_each_type(c):
    for value in ["Grüße", b"\r\n\x00", 5, {"a": (1, 2)}, b"x" * 60_000]:
        assert c.set("key", value, ttl=1000) is True
        assert c.get("key") == value
    assert c.get("nobody") is None


def test_a_key_that_is_no_word_is_sent_in_base64(c):
    assert c.set("Grüße und mehr", "value", ttl=1000)
    assert c.get("Grüße und mehr") == "value"
    assert c.multi_get(["Grüße und mehr"]) == {Key("Grüße und mehr"): "value"}


def test_many_keys_at_once(c):
    for n in range(300):
        assert c.set(f"key:{n}", n, ttl=1000, no_reply=n % 2 == 0)
    found = c.multi_get([f"key:{n}" for n in range(301)])
    assert {key.key: value for key, value in found.items()} == {
        f"key:{n}": n if n < 300 else None for n in range(301)
    }


def test_each_way_to_store(c):
    assert c.set("key", b"b", ttl=1000, set_mode=SetMode.ADD) is True
    assert c.set("key", b"x", ttl=1000, set_mode=SetMode.ADD) is False
    assert c.refill("key", b"x", ttl=1000) is False
    assert c.set("key", b"c", ttl=1000, set_mode=SetMode.APPEND) is True
    assert c.set("key", b"a", ttl=1000, set_mode=SetMode.PREPEND) is True
    assert c.get("key") == b"abc"
    assert c.set("nobody", b"x", ttl=1000, set_mode=SetMode.REPLACE) is False
    assert c.delete("key") is True and c.delete("key") is False and c.invalidate("key") is True


def test_compare_and_set(c):
    token = c.set_cas("key", "1", ttl=1000)
    assert c.get_cas("key") == ("1", token)
    assert c.set("key", "2", ttl=1000, cas_token=token) is True
    assert c.set("key", "3", ttl=1000, cas_token=token) is False
    assert c.delete("key", cas_token=token) is False
    assert c.get("key") == "2"


def test_numbers(c):
    assert c.delta_initialize_and_get("n", 1, initial_value=40, initial_ttl=1000) == 40
    assert c.delta_and_get("n", 2) == 42
    assert c.delta_and_get("n", -50) == 0
    assert c.delta("n", 7, refresh_ttl=100) is True
    assert c.delta("nobody", 7) is False
    assert c.get("n") == "7"


def test_times(c):
    c.set("key", "value", ttl=1000)
    assert c.touch("key", ttl=50) is True
    assert c.touch("nobody", ttl=50) is False
    found = c.meta_get(Key("key"), RequestFlags(return_ttl=True, return_size=True))
    assert isinstance(found, Success)
    assert 0 < found.flags.ttl <= 50
    assert c.get("key", touch_ttl=500) == "value"


def test_one_client_is_told_to_make_a_value_and_others_wait(c):
    lease = LeasePolicy(ttl=1000, miss_retries=1, miss_retry_wait=0)
    value, token = c.get_or_lease_cas("key", lease)
    assert value is None and token is not None
    assert c.get_or_lease("key", lease) is None
    assert c.set("key", "made", ttl=1000, cas_token=token) is True
    assert c.get_or_lease("key", lease) == "made"


def test_a_stale_value_is_handed_out_until_it_is_made_anew(c):
    c.set("key", "old", ttl=1000)
    _, token = c.get_cas("key")
    stale = StalePolicy(mark_stale_on_deletion_ttl=100)
    assert c.delete("key", stale_policy=stale) is True
    recache = RecachePolicy(ttl=30)
    # The first to see it is to make it anew, the others get the old value.
    assert c.get("key", recache_policy=recache) is None
    assert c.get("key", recache_policy=recache) == "old"
    assert c.set("key", "new", ttl=1000) and c.get("key") == "new"


def test_answers_of_the_commands_themselves(c):
    assert isinstance(c.meta_get(Key("nobody")), Miss)
    assert isinstance(c.meta_set(Key("key"), b"value", RequestFlags(cache_ttl=1000)), Success)
    found = c.meta_get(Key("key"), RequestFlags(return_value=True, return_size=True))
    assert isinstance(found, Value) and found.value == "value" and found.flags.size == 5
    assert isinstance(c.meta_delete(Key("key")), Success)
