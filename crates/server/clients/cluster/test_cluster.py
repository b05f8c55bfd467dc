"""What redis-py does with a cluster, and what a cluster does without one of its nodes."""

import signal
import socket

from conftest import is_complete
from processes import until


def test_ordinary_work(nodes, cluster):
    owners = {node.port: int(node.info()["cluster_slots_served"]) for node in nodes}
    assert sorted(owners.values()) == [5461, 5461, 5462]
    keys = [f"key{number}" for number in range(500)]
    assert all(cluster.set(key, key) for key in keys)
    assert cluster.mget_nonatomic(keys) == [key.encode() for key in keys]
    assert cluster.dbsize(target_nodes=cluster.PRIMARIES) == 500
    assert {key.decode() for key in cluster.scan_iter(count=100)} == set(keys)
    assert cluster.mset({"{user:7}.name": "a", "{user:7}.mail": "b"})
    assert cluster.mget("{user:7}.name", "{user:7}.mail") == [b"a", b"b"]
    with cluster.pipeline() as pipeline:
        for key in keys:
            pipeline.get(key)
        assert pipeline.execute() == [key.encode() for key in keys]
    assert cluster.incr("counter") == 1
    assert cluster.expire("counter", 100)
    assert 0 < cluster.ttl("counter") <= 100
    slot = cluster.keyslot("{user:7}.name")
    assert cluster.cluster_keyslot("{user:7}.name") == slot
    assert cluster.cluster_countkeysinslot(slot) == 2
    assert sorted(cluster.cluster_get_keys_in_slot(slot, 10)) == ["{user:7}.mail", "{user:7}.name"]
    assert sum(cluster.delete(key) for key in keys) == 500


def test_a_node_is_killed_and_started_again(nodes, cluster, write):
    assert write(200, 1) == 0
    with nodes[0].client() as client:
        identifier = client.execute_command("CLUSTER MYID")
    nodes[0].end(signal.SIGKILL)
    rounds = iter(range(2, 1000))

    def writes_until(what, check):
        until(what, lambda: write(20, next(rounds)) >= 0 and check())

    # The others take its slots when its lease has ended. Until then its keys fail.
    writes_until("two nodes serve all slots", lambda: is_complete(nodes[1:], 2))
    assert write(200, next(rounds)) == 0
    nodes[0].start()
    writes_until("the node has slots again", lambda: is_complete(nodes, 3))
    assert write(200, next(rounds)) == 0
    with nodes[0].client() as client:
        assert client.execute_command("CLUSTER MYID") == identifier
    # A node that ends in an orderly way does not wait for the end of its lease.
    assert nodes[0].end(signal.SIGTERM) == 0
    until("two nodes serve all slots", lambda: is_complete(nodes[1:], 2))
    assert write(200, next(rounds)) == 0


def test_a_node_that_was_stopped_returns_nothing_old(nodes, cluster):
    owner = cluster.get_node_from_key("key").port
    stopped = next(node for node in nodes if node.port == owner)
    others = [node for node in nodes if node is not stopped]
    assert cluster.set("key", "old")
    with socket.create_connection(("127.0.0.1", stopped.port), timeout=60) as waiting:
        stopped.pause()
        # It executes this request when it continues.
        waiting.sendall(b"GET key\r\nGET key\r\n")
        until("the others serve all slots", lambda: is_complete(others, 2))
        slot = cluster.keyslot("key")
        with others[0].client() as client:
            ranges = client.cluster("slots")
        port = next(node[1] for first, last, node, *_ in ranges if first <= slot <= last)
        new = next(node for node in others if node.port == port)
        with new.client() as client:
            assert client.get("key") is None
            assert client.set("key", "new")
        stopped.resume()
        try:
            reply = waiting.recv(1000)
        except ConnectionResetError:
            reply = b""
        assert reply.startswith((b"-CLUSTERDOWN", b"-MOVED")) or reply == b"", reply
