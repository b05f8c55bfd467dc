"""redis-py: what a client asks of the server and of its connection."""

import asyncio

import pytest
import redis
import redis.asyncio
from conftest import REDIS, RESP
from redis.backoff import NoBackoff
from redis.retry import Retry


def test_the_connection(r):
    assert r.ping() is True
    assert r.echo("hello") == b"hello"
    assert r.execute_command("SELECT", 0) in (True, b"OK")
    with pytest.raises(redis.ResponseError, match="out of range"):
        r.execute_command("SELECT", 1)


def test_a_client_has_a_name(r):
    with r.client() as one:
        assert one.client_setname("somebody") is True
        assert one.client_getname() in ("somebody", b"somebody")
        assert one.client_info()["name"] == "somebody"
        mine = [c for c in r.client_list() if c["id"] == str(one.client_id())]
        assert [c["name"] for c in mine] == ["somebody"]
        assert [(c["lib-name"], c["lib-ver"]) for c in mine] == [("redis-py", redis.__version__)]
        assert one.client_no_evict("ON") in (True, b"OK")


def test_a_name_given_at_connection():
    with redis.Redis(host=RESP[0], port=RESP[1], client_name="given") as client:
        assert client.client_info()["name"] == "given"


def test_a_client_is_killed(r):
    # This one tries again when its connection is closed while it waits for an answer.
    with REDIS["as_it_comes"]() as other:
        victim = other.client_id()
        assert r.client_kill_filter(_id=victim) == 1
        assert victim not in [int(client["id"]) for client in r.client_list()]
        # It connects again.
        assert other.ping() and other.client_id() != victim


def test_the_protocols_greeting():
    with REDIS["resp3"]() as client:
        greeting = client.execute_command("HELLO", 3)
        assert (greeting[b"proto"], greeting[b"mode"]) == (3, b"standalone")
        with pytest.raises(redis.ResponseError, match="NOPROTO|unsupported protocol"):
            client.execute_command("HELLO", 4)
    with REDIS["resp2"]() as client:
        greeting = client.execute_command("HELLO", 2, "SETNAME", "greeter")
        assert greeting[greeting.index(b"proto") + 1] == 2
        assert client.client_getname() in ("greeter", b"greeter")


def test_information(r):
    info = r.info()
    assert info["redis_mode"] == "standalone" and info["role"] == "master"
    assert info["maxmemory"] == 256 << 20
    assert info["connected_clients"] >= 1
    assert r.info("memory")["used_memory"] > 0
    assert r.info("everything")["cmdstat_info"]["calls"] >= 1
    r.set("key", "value")
    r.get("key"), r.get("nobody")
    assert r.info("keyspace")["db0"]["keys"] == 1
    assert r.info("stats")["keyspace_misses"] >= 1
    assert r.memory_stats()["keys.count"] == 1


def test_the_configuration(r):
    assert r.config_get("maxmemory*")["maxmemory"] == str(256 << 20)
    assert r.config_get("slowlog-max-len", "timeout").keys() == {"slowlog-max-len", "timeout"}
    before = r.config_get("slowlog-max-len")["slowlog-max-len"]
    assert r.config_set("slowlog-max-len", 77)
    assert r.config_get("slowlog-max-len")["slowlog-max-len"] == "77"
    assert r.config_set("slowlog-max-len", before)
    with pytest.raises(redis.ResponseError):
        r.config_set("slowlog-max-len", "many")
    assert r.config_resetstat()


def test_the_slow_log(r):
    before = r.config_get("slowlog-log-slower-than")["slowlog-log-slower-than"]
    r.slowlog_reset()
    r.config_set("slowlog-log-slower-than", 0)
    r.set("slow", "value")
    r.config_set("slowlog-log-slower-than", before)
    commands = [entry["command"] for entry in r.slowlog_get()]
    assert b"SET slow value" in commands or b"set slow value" in commands
    assert r.slowlog_len() >= 1 and r.slowlog_reset()


def test_the_commands_there_are(r):
    commands = r.command()
    assert len(commands) == r.command_count() and {"get", "set", "exec"} <= commands.keys()
    assert commands["mset"]["step_count"] == 2
    assert r.command_getkeys("MSET", "a", "1", "b", "2") in (["a", "b"], [b"a", b"b"])
    names = {name.decode() if isinstance(name, bytes) else name for name in r.command_list()}
    assert {"get", "client", "client|list"} <= names


def test_who_and_when(r):
    assert r.acl_whoami() in ("default", b"default")
    seconds, microseconds = r.time()
    assert seconds > 1_600_000_000 and 0 <= microseconds < 1_000_000


def test_errors_have_the_classes_that_clients_know(r):
    with pytest.raises(redis.ResponseError, match="unknown command"):
        r.execute_command("LPUSH", "list", "1")
    with pytest.raises(redis.ResponseError, match="wrong number of arguments for 'get'"):
        r.execute_command("GET")
    with pytest.raises(redis.ResponseError, match="syntax error"):
        r.execute_command("SET", "a", "b", "c")
    # None of that cost the connection.
    assert r.ping()


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_wrong_password_is_an_error_of_its_own(protocol):
    once = Retry(NoBackoff(), 0)
    wrong = {"username": "somebody", "password": "wrong", "retry": once}
    with redis.Redis(host=RESP[0], port=RESP[1], protocol=protocol, **wrong) as client:
        with pytest.raises(redis.AuthenticationError):
            client.ping()


@pytest.mark.parametrize("protocol", [2, 3])
def test_many_tasks_at_once(protocol):
    async def count():
        async with redis.asyncio.Redis(host=RESP[0], port=RESP[1], protocol=protocol) as client:
            await client.flushall()
            await asyncio.gather(*(client.incr("n") for _ in range(50)))
            async with client.pipeline() as pipe:
                return await pipe.get("n").incr("n").execute()

    assert asyncio.run(count()) == [b"50", 51]
