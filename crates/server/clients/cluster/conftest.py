"""A cluster of three nodes for every test."""

import pytest
import redis
from processes import PATIENCE, Etcd, Node, until
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException


def is_complete(nodes, count):
    """Whether all these nodes know this many nodes, which serve all slots."""
    infos = [node.info() for node in nodes]
    states = {(info["cluster_state"], int(info["cluster_known_nodes"])) for info in infos}
    served = sum(int(info["cluster_slots_served"]) for info in infos)
    return states == {("ok", count)} and served == 16384


def is_balanced(nodes):
    """Whether these nodes are all that there are, and have equal shares of all slots."""
    share = 16384 // len(nodes)
    served = [int(node.info()["cluster_slots_served"]) for node in nodes]
    return is_complete(nodes, len(nodes)) and set(served) <= {share, share + 1}


@pytest.fixture
def nodes(tmp_path):
    etcd = Etcd(tmp_path)
    nodes = []
    try:
        nodes += [Node(tmp_path, f"node{number}", etcd.endpoint) for number in range(3)]
        until("three nodes share the slots", lambda: is_complete(nodes, 3))
        yield nodes
    finally:
        for node in nodes:
            node.end()
        etcd.end()


@pytest.fixture
def cluster(nodes):
    """A client of redis-py that knows the addresses of all nodes."""
    startup = [ClusterNode("127.0.0.1", node.port) for node in nodes]
    # Slots of a node that has died have no owner for a while.
    options = {"require_full_coverage": False, "socket_timeout": PATIENCE}
    with RedisCluster(startup_nodes=startup, **options) as client:
        yield client


@pytest.fixture
def write(cluster):
    """Writes and reads keys, and checks that no read is older than an acknowledged write."""
    acknowledged = {}

    def write(keys, value):
        """Returns how many keys could not be written or read."""
        failed = 0
        for number in range(keys):
            key = f"key{number}"
            try:
                cluster.set(key, value)
                acknowledged[key] = value
                found = cluster.get(key)
            except (redis.RedisError, RedisClusterException):
                # The write may have been executed.
                acknowledged.pop(key, None)
                failed += 1
                continue
            # A cache may lose items, and must not return older ones.
            assert found in (None, str(value).encode()), key
        return failed

    return write
