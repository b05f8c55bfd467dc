"""Items on disk move with their slots, and survive the process of their node if no other node has
served their slots since."""

import contextlib
import dataclasses
import signal

import pytest
from conftest import is_balanced, is_complete
from processes import Etcd, Node, until
from redis.cluster import ClusterNode, RedisCluster

VALUE_LEN = 16000
BATCH = 100
MIN_HIT_RATIO = 0.99
# Items that were in memory when the process was killed are lost.
MIN_HIT_RATIO_AFTER_KILL = 0.6


@dataclasses.dataclass(frozen=True)
class Kind:
    """How nodes keep their items, and the number of keys that fit. They have 96 MiB of memory."""

    options: tuple
    keys: int


DISK = Kind(("--disk", "256MiB", "--disk-full", "wait"), 8000)
DUMP = Kind(("--warm-restart", "--cluster-stop=keep"), 4000)
KINDS = pytest.mark.parametrize("kind", [DISK, DUMP], ids=["disk", "dump"])


@pytest.fixture
def start(tmp_path):
    """Starts nodes with these options, and returns them with a client."""
    with contextlib.ExitStack() as stack:
        etcd = Etcd(tmp_path)
        stack.callback(lambda: etcd.end())

        def start(*options):
            nodes = []
            for number in range(3):
                nodes.append(Node(tmp_path, f"node{number}", etcd.endpoint, *options))
                stack.callback(nodes[-1].end)
            until("three nodes share the slots", lambda: is_complete(nodes, 3))
            startup = [ClusterNode("127.0.0.1", node.port) for node in nodes]
            client = RedisCluster(startup_nodes=startup, require_full_coverage=False)
            return nodes, stack.enter_context(client)

        yield start


def value(number, version):
    return f"{number} {version} ".ljust(VALUE_LEN, "x")


def write_all(cluster, kind, version):
    for first in range(0, kind.keys, BATCH):
        with cluster.pipeline() as pipeline:
            for number in range(first, first + BATCH):
                # Some expire, long after the test.
                pipeline.set(f"key{number}", value(number, version), ex=[None, 86400][number % 2])
            assert all(pipeline.execute())


def hit_ratio(cluster, kind, version):
    """Reads all keys. Each has the value of this version, or is lost."""
    hits = 0
    for first in range(0, kind.keys, BATCH):
        numbers = range(first, first + BATCH)
        with cluster.pipeline() as pipeline:
            for number in numbers:
                pipeline.get(f"key{number}")
            found = pipeline.execute()
        for number, one in zip(numbers, found, strict=True):
            assert one in (None, value(number, version).encode()), f"key{number}: {one[:20]}"
            hits += one is not None
    return hits / kind.keys


def recovered(node):
    """Whether the items of the last process of a node are there."""
    with node.client() as client:
        info = client.info("everything")
    return not info["restore_in_progress"] and not info.get("disk_recovering", 0)


def count_items(node):
    with node.client() as client:
        return client.dbsize()


def restart(nodes, number):
    for node in nodes:
        node.process.send_signal(number)
    for node in nodes:
        node.wait()
    for node in nodes:
        node.start()
    until("the nodes have their items", lambda: all(recovered(node) for node in nodes))


def test_items_on_disk_move_without_misses(start):
    nodes, cluster = start(*DISK.options, "--cluster-stop=drain")
    write_all(cluster, DISK, 1)
    assert hit_ratio(cluster, DISK, 1) >= MIN_HIT_RATIO
    assert nodes[0].end(signal.SIGTERM) == 0
    until("two nodes serve all slots", lambda: is_complete(nodes[1:], 2))
    assert hit_ratio(cluster, DISK, 1) >= MIN_HIT_RATIO
    nodes[0].start()
    until("the node has its share again", lambda: is_balanced(nodes))
    assert hit_ratio(cluster, DISK, 1) >= MIN_HIT_RATIO
    times = [cluster.ttl(f"key{number}") for number in range(100)]
    assert set(times[0::2]) <= {-1, -2}
    assert all(0 < time <= 86400 or time == -2 for time in times[1::2])


def test_a_node_that_receives_items_drops_none(start):
    nodes, cluster = start("--disk", "256MiB", "--disk-full", "drop", "--cluster-stop=drain")
    write_all(cluster, DISK, 1)
    items = sum(map(count_items, nodes))
    assert nodes[0].end(signal.SIGTERM) == 0
    until("two nodes serve all slots", lambda: is_complete(nodes[1:], 2))
    assert sum(map(count_items, nodes[1:])) >= items * MIN_HIT_RATIO


@KINDS
def test_a_cluster_that_is_stopped_has_its_items_again(start, kind):
    nodes, cluster = start(*kind.options)
    write_all(cluster, kind, 1)
    restart(nodes, signal.SIGTERM)
    until("three nodes share the slots", lambda: is_complete(nodes, 3))
    assert hit_ratio(cluster, kind, 1) >= MIN_HIT_RATIO
    assert "dropped" not in nodes[0].log()


def test_nodes_that_stop_together_keep_their_items(start):
    nodes, cluster = start("--warm-restart")
    write_all(cluster, DUMP, 1)
    restart(nodes, signal.SIGTERM)
    until("three nodes share the slots", lambda: is_complete(nodes, 3))
    assert hit_ratio(cluster, DUMP, 1) >= MIN_HIT_RATIO


@KINDS
def test_a_node_that_stops_before_it_serves_keeps_its_items(start, kind):
    nodes, cluster = start(*kind.options)
    write_all(cluster, kind, 1)
    nodes[0].end(signal.SIGTERM)
    for _ in range(4):
        # It recovers its items, and has no slots yet.
        nodes[0].start()
        assert nodes[0].end(signal.SIGTERM) == 0
    nodes[0].start()
    until("the node has its items", lambda: recovered(nodes[0]))
    until("three nodes share the slots", lambda: is_complete(nodes, 3))
    assert hit_ratio(cluster, kind, 1) >= MIN_HIT_RATIO


def test_a_killed_node_has_its_items_on_disk_again(start):
    nodes, cluster = start(*DISK.options)
    write_all(cluster, DISK, 1)
    restart(nodes[:1], signal.SIGKILL)
    until("three nodes share the slots", lambda: is_complete(nodes, 3))
    assert hit_ratio(cluster, DISK, 1) >= MIN_HIT_RATIO_AFTER_KILL


@KINDS
def test_items_that_another_node_has_served_since_are_not_found(start, kind):
    nodes, cluster = start(*kind.options, "--cluster-restart-ms=0")
    write_all(cluster, kind, 1)
    nodes[0].end(signal.SIGTERM)
    until("two nodes serve all slots", lambda: is_complete(nodes[1:], 2))
    write_all(cluster, kind, 2)
    nodes[0].start()
    until("the node has its share again", lambda: is_balanced(nodes))
    hit_ratio(cluster, kind, 2)
    # Those of the last process whose slots other nodes have.
    until("no node has other items", lambda: sum(map(count_items, nodes)) <= kind.keys)
    restart(nodes[:1], signal.SIGTERM)
    until("three nodes share the slots", lambda: is_complete(nodes, 3))
    assert hit_ratio(cluster, kind, 2) > 0.5


@KINDS
def test_a_server_without_a_cluster_drops_the_items_of_a_node(start, kind):
    nodes, cluster = start(*kind.options)
    write_all(cluster, kind, 1)
    node = nodes[0]
    for is_node in (False, True):
        assert node.end(signal.SIGTERM) == 0
        node.start(is_node)
        until("the items are there", lambda: recovered(node))
        if not is_node:
            assert count_items(node) == 0
            with node.client() as client:
                client.set("other", "value")
    until("three nodes share the slots", lambda: is_complete(nodes, 3))
    assert count_items(node) == 0
