"""Where the server is, and a client of each kind for every test that asks for one."""

import os
from contextlib import closing

import pymemcache
import pytest
import redis
from redis._parsers import _HiredisParser, _RESP2Parser, _RESP3Parser


def address(name):
    """Host and port of a listener, as scripts/clients hands them on."""
    host, _, port = os.environ[name].rpartition(":")
    return host, int(port)


RESP = address("NUTHATCH_RESP")
RESP_SOCKET = os.environ["NUTHATCH_RESP_SOCKET"]
MEMCACHE = address("NUTHATCH_MEMCACHE")
MEMCACHE_SOCKET = os.environ["NUTHATCH_MEMCACHE_SOCKET"]


# Longer than any machine takes: a test that waits so long has failed.
WAIT = {"socket_timeout": 60, "socket_connect_timeout": 60}


def tcp(protocol, parser):
    options = {"protocol": protocol, "parser_class": parser, **WAIT}
    return redis.Redis.from_pool(redis.ConnectionPool(host=RESP[0], port=RESP[1], **options))


# Both protocols, each with the parser written in Python and with the one written in C.
REDIS = {
    "as_it_comes": lambda: redis.Redis(host=RESP[0], port=RESP[1], **WAIT),
    "resp2": lambda: tcp(2, _RESP2Parser),
    "resp2_hiredis": lambda: tcp(2, _HiredisParser),
    "resp3": lambda: tcp(3, _RESP3Parser),
    "resp3_hiredis": lambda: tcp(3, _HiredisParser),
    "unix_socket": lambda: redis.Redis(unix_socket_path=RESP_SOCKET, **WAIT),
}


@pytest.fixture(params=REDIS)
def r(request):
    """A client of redis-py, and an empty server."""
    with REDIS[request.param]() as client:
        client.flushall()
        yield client


@pytest.fixture(params=[MEMCACHE, MEMCACHE_SOCKET], ids=["tcp", "unix_socket"])
def m(request):
    """A client of pymemcache, and an empty server."""
    with closing(pymemcache.Client(request.param, default_noreply=False)) as client:
        client.flush_all()
        yield client
