"""A node without any network: no etcd, no other nodes, no clients, in the middle of moves."""

import contextlib
import sys

import journal
import ownership
import pytest
from conftest import is_balanced, is_complete
from namespace import INSIDE, OUTSIDE, Namespace
from processes import Etcd, Node, until
from redis.cluster import ClusterNode, RedisCluster

KEYS = 16384
BATCH = 512
MIN_HIT_RATIO = 0.99
# Moves last so long that the link is cut in the middle of one.
OPTIONS = ("--insecure", "--cluster-move-rate", "1MiB")

# Prints the value of a field of CLUSTER INFO.
ASK = """
import redis, sys
host, port, field = sys.argv[1:]
info = redis.Redis(host=host, port=int(port)).execute_command("CLUSTER INFO")
info = info if isinstance(info, dict) else dict(
    line.split(":", 1) for line in info.decode().split()
)
print(info[field])
"""


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


class Nodes:
    """Three nodes, of which the first one is in a namespace, and a fourth one that may join."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack
        self.namespace = Namespace()
        stack.callback(self.namespace.close)
        self.etcd = Etcd(folder, OUTSIDE)
        stack.callback(lambda: self.etcd.end())
        self.cut_off = self.start("node0", INSIDE, self.namespace.command)
        self.others = [self.start(f"node{number}", OUTSIDE, ()) for number in (1, 2)]
        until("three nodes share the slots", lambda: is_balanced([self.cut_off, *self.others]))

    def start(self, name, host, command):
        node = Node(self.folder, name, self.etcd.endpoint, *OPTIONS, host=host, command=command)
        self.stack.callback(node.end)
        return node

    def client(self, nodes):
        startup = [ClusterNode(node.host, node.port) for node in nodes]
        client = RedisCluster(startup_nodes=startup, require_full_coverage=False)
        return self.stack.enter_context(client)

    def state_of_cut_off(self):
        """What the node answers to a client in its namespace."""
        arguments = (INSIDE, str(self.cut_off.port), "cluster_state")
        return self.namespace.run(sys.executable, "-c", ASK, *arguments).strip()


def write_all(client, version):
    for first in range(0, KEYS, BATCH):
        with client.pipeline() as pipeline:
            for number in range(first, first + BATCH):
                pipeline.set(f"key{number}", f"{version} ".ljust(1000, "x"))
            assert all(pipeline.execute())


def hit_ratio(client, version):
    """Reads all keys. Each has the value of this version, or is lost."""
    hits = 0
    for first in range(0, KEYS, BATCH):
        with client.pipeline() as pipeline:
            for number in range(first, first + BATCH):
                pipeline.get(f"key{number}")
            found = pipeline.execute()
        assert all(one is None or one.startswith(b"%d " % version) for one in found)
        hits += sum(one is not None for one in found)
    return hits / KEYS


def test_a_node_without_any_network_loses_its_slots_and_serves_no_old_values(tmp_path, stack):
    nodes = Nodes(tmp_path, stack)
    cut_off = nodes.cut_off
    write_all(nodes.client([cut_off, *nodes.others]), 1)
    nodes.others.append(nodes.start("node3", OUTSIDE, ()))
    until("slots move from the node", lambda: "0" != cut_off.info()["cluster_slots_moving"])
    nodes.namespace.cut()
    until("the others serve all slots", lambda: is_complete(nodes.others, 3))
    assert nodes.state_of_cut_off() == "fail"
    client = nodes.client(nodes.others)
    write_all(client, 2)
    nodes.namespace.heal()
    until("all share the slots", lambda: is_balanced([cut_off, *nodes.others]))
    assert hit_ratio(client, 2) >= MIN_HIT_RATIO
    all_nodes = [cut_off, *nodes.others]
    history = ownership.check(ownership.read(nodes.etcd.endpoint))
    assert history.problems == []
    services = [journal.services(node.name, node.log(), node.exits) for node in all_nodes]
    assert journal.check(services) == []
