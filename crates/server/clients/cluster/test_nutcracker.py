"""Debian's nutcracker in front of two nodes, which forward what it sends to the wrong one."""

import subprocess

import pytest
import redis
from conftest import is_complete
from processes import PATIENCE, Etcd, Node, free_port, until
from pymemcache.client.base import Client as Memcached

KEYS = 300


@pytest.fixture
def nodes(tmp_path):
    """Two nodes for clients that know nothing of clusters."""
    etcd = Etcd(tmp_path)
    nodes = []
    try:
        for number in range(2):
            port = free_port()
            options = ["--cluster-forward", "--memcache", f"127.0.0.1:{port}"]
            nodes.append(Node(tmp_path, f"node{number}", etcd.endpoint, *options))
            nodes[-1].memcached_port = port
        until("two nodes share the slots", lambda: is_complete(nodes, 2))
        yield nodes
    finally:
        for node in nodes:
            node.end()
        etcd.end()


@pytest.fixture
def nutcracker(tmp_path, request):
    """Starts a proxy with these servers, and returns its port."""

    def start(is_redis, ports, ejection="  auto_eject_hosts: false\n"):
        port, stats = free_port(), free_port()
        servers = "".join(f"   - 127.0.0.1:{one}:1\n" for one in ports)
        config = tmp_path / "nutcracker.yml"
        config.write_text(
            f"cache:\n  listen: 127.0.0.1:{port}\n  redis: {str(is_redis).lower()}\n"
            f"  hash: fnv1a_64\n  distribution: ketama\n{ejection}"
            f"  server_connections: 4\n  servers:\n{servers}"
        )
        process = subprocess.Popen(
            ["nutcracker", "-c", config, "-s", str(stats), "-a", "127.0.0.1"]
            + ["-o", tmp_path / "nutcracker.log"]
        )
        request.addfinalizer(process.wait)
        request.addfinalizer(process.kill)
        return port

    return start


def forwarded(nodes):
    """How many requests each node has forwarded. None has failed."""
    infos = [node.info() for node in nodes]
    assert [info["cluster_forwards_failed"] for info in infos] == ["0", "0"]
    return [int(info["cluster_forwarded_requests"]) for info in infos]


def test_redis(nodes, nutcracker):
    port = nutcracker(True, [node.port for node in nodes])
    # The proxy refuses commands that it does not know.
    options = {"protocol": 2, "driver_info": None, "socket_timeout": PATIENCE}
    client = redis.Redis(host="127.0.0.1", port=port, **options)
    until("the proxy is ready", lambda: client.set("ready", 1))
    keys = [f"key{number}" for number in range(KEYS)]
    for key in keys:
        assert client.set(key, key, ex=100)
    assert client.mget(keys + ["absent"]) == [key.encode() for key in keys] + [None]
    assert client.mset({key: key[3:] for key in keys})
    assert [client.incr(key) for key in keys] == list(range(1, KEYS + 1))
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.get(key)
    assert pipeline.execute() == [str(number).encode() for number in range(1, KEYS + 1)]
    assert client.delete(*keys[:100]) == 100
    assert sum(client.exists(key) for key in keys) == KEYS - 100
    # About half of the keys are owned by the other node, which depends on their identifiers.
    assert sum(forwarded(nodes)) > KEYS / 2
    with nodes[0].client() as one, nodes[1].client() as other:
        for key in keys[100:]:
            assert one.get(key) == other.get(key) == client.get(key)


def test_a_proxy_that_leaves_out_nodes_that_are_down(nodes, nutcracker):
    ejection = (
        "  auto_eject_hosts: true\n  server_failure_limit: 1\n  server_retry_timeout: 60000\n"
    )
    port = nutcracker(True, [node.port for node in nodes], ejection)
    options = {"protocol": 2, "driver_info": None, "socket_timeout": PATIENCE}
    client = redis.Redis(host="127.0.0.1", port=port, **options)
    until("the proxy is ready", lambda: client.set("ready", 1))
    keys = [f"key{number}" for number in range(KEYS)]
    assert all(client.set(key, "old") for key in keys)
    nodes[1].end()

    def is_set(key):
        try:
            return client.set(key, "new")
        except redis.RedisError:
            return False

    # The other node serves all slots when the lease of the killed one has ended.
    for key in keys:
        until("a node serves the key", lambda key=key: is_set(key))
    assert client.mget(keys) == [b"new"] * KEYS


def test_memcached(nodes, nutcracker):
    port = nutcracker(False, [node.memcached_port for node in nodes])
    client = Memcached(("127.0.0.1", port), timeout=PATIENCE, default_noreply=False)

    def is_ready():
        try:
            return client.set("ready", "1")
        except OSError:
            return False

    until("the proxy is ready", is_ready)
    keys = [f"key{number}" for number in range(KEYS)]
    for key in keys:
        assert client.set(key, key, expire=100, flags=3)
    assert client.get_many(keys + ["absent"]) == {key: key.encode() for key in keys}
    for key in keys:
        value, cas = client.gets(key)
        assert value == key.encode()
        assert client.cas(key, key[3:], cas)
        assert client.cas(key, "late", cas) is False
    assert [client.incr(key, 1) for key in keys] == list(range(1, KEYS + 1))
    assert all(client.touch(key, 100) for key in keys)
    assert all(client.delete(key) for key in keys[:100])
    assert sum(forwarded(nodes)) > KEYS / 2
    # Each node has all keys, for clients of both systems.
    for node in nodes:
        direct = Memcached(("127.0.0.1", node.memcached_port), timeout=PATIENCE)
        assert len(direct.get_many(keys)) == KEYS - 100
        with node.client() as resp:
            assert resp.mget(keys[100:]) == [str(key + 1).encode() for key in range(100, KEYS)]
