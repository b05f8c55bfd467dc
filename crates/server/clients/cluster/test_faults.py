"""Six nodes, clients of five libraries, and all faults of nodes and of etcd."""

import contextlib
import signal
import time

import errors
import history
import journal
import ownership
import pytest
from conftest import is_balanced
from direct import DirectReader
from processes import Etcd, Node, until
from programs import COMMANDS, Program
from proxy import Proxy
from redis.cluster import RedisCluster

# So many operations of each client without an error show that it works.
STREAK = 100
# Of reads while slots move as planned.
MIN_HIT_RATIO = 0.99


# How nodes keep their items; others have them in memory only.
ON_DISK = ("--disk", "64MiB", "--cluster-stop=drain")
DUMPED = ("--warm-restart", "--cluster-stop=keep")
OPTIONS = {1: ON_DISK, 2: ON_DISK, 3: DUMPED, 4: DUMPED}


class Cluster:
    """Five nodes with clients, and a sixth node that may join them."""

    def __init__(self, folder, exit_stack):
        self.folder, self.exit_stack = folder, exit_stack
        self.etcd = Etcd(folder)
        exit_stack.callback(lambda: self.etcd.end())
        self.proxy = Proxy(self.etcd.endpoint)
        exit_stack.callback(self.proxy.close)
        # Start and end of each fault.
        self.faults = []
        self.nodes = []
        self.readers = []
        self.start_node(self.proxy.address)
        for _ in range(4):
            self.start_node(self.etcd.endpoint)
        self.wait_for(self.nodes)
        self.fill()
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
        self.programs = []
        for name in COMMANDS:
            program = Program(name, addresses, folder)
            exit_stack.callback(program.kill)
            self.programs.append(program)
        self.wait_for_clients()

    def start_node(self, endpoint):
        # Moves last so long that clients change items meanwhile.
        options = ("--cluster-move-rate", "1MiB", *OPTIONS.get(len(self.nodes), ()))
        node = Node(self.folder, f"node{len(self.nodes)}", endpoint, *options)
        self.exit_stack.callback(node.end)
        self.nodes.append(node)
        self.readers.append(DirectReader(node, self.folder))

    def fill(self):
        """Writes other items, 1 KB for each slot."""
        with RedisCluster("127.0.0.1", self.nodes[0].port) as redis:
            for first in range(0, 16384, 1024):
                pipeline = redis.pipeline()
                for number in range(first, first + 1024):
                    pipeline.set(f"other{number}", "x" * 1000)
                assert all(pipeline.execute())

    def without(self, *excluded):
        return [node for node in self.nodes if node not in excluded]

    def wait_for(self, nodes):
        """Waits until these nodes are all that there are, and have equal shares of all slots."""
        until(f"{[node.name for node in nodes]} share all slots", lambda: is_balanced(nodes))

    def wait_for_clients(self):
        """Waits until all clients have executed operations without errors."""
        for program in self.programs:
            program.streak = 0

        def are_well():
            return min(program.count_streak() for program in self.programs) >= STREAK

        until("all clients work without errors", are_well)

    @contextlib.contextmanager
    def fault(self, name, *kinds):
        """A time in which clients may have errors of these kinds. Then they have to work without
        errors."""
        start = time.monotonic_ns()
        yield
        self.wait_for(self.nodes)
        self.wait_for_clients()
        self.faults.append(errors.Fault(name, kinds, start, time.monotonic_ns()))
        self.wait_for_clients()


@pytest.fixture
def cluster(tmp_path):
    with contextlib.ExitStack() as exit_stack:
        yield Cluster(tmp_path, exit_stack)


def test_no_client_reads_an_older_value_after_any_fault(cluster):
    partitioned, left, killed, stopped, dumped, *_ = cluster.nodes
    with cluster.fault("a node joins", *errors.MOVES):
        cluster.start_node(cluster.etcd.endpoint)
    with cluster.fault("a node ends and starts again", *errors.KINDS):
        assert left.end(signal.SIGTERM) == 0
        cluster.wait_for(cluster.without(left))
        left.start()
    with cluster.fault("a node is killed, another one is without etcd", *errors.KINDS):
        cluster.proxy.cut()
        killed.end(signal.SIGKILL)
        cluster.wait_for(cluster.without(killed, partitioned))
        assert partitioned.info()["cluster_state"] == "fail"
        cluster.proxy.heal()
        killed.start()
    with cluster.fault("a node is stopped", *errors.KINDS):
        stopped.pause()
        cluster.wait_for(cluster.without(stopped))
        stopped.resume()
    with cluster.fault("nodes are started again with their items", *errors.KINDS):
        killed.end(signal.SIGKILL)
        killed.start()
        assert dumped.end(signal.SIGTERM) == 0
        dumped.start()
    with cluster.fault("etcd is stopped", *errors.KINDS):
        cluster.etcd.pause()
        until("no node serves", lambda: {state(node) for node in cluster.nodes} == {"fail"})
        cluster.etcd.resume()
    with cluster.fault("etcd is killed", *errors.KINDS):
        cluster.etcd.end(signal.SIGKILL)
        cluster.etcd.start()
    check(cluster)


def state(node):
    return node.info()["cluster_state"]


def check(cluster):
    """Ends the clients, and checks what they have seen and what etcd has."""
    assert [program.end() for program in cluster.programs] == [0] * len(COMMANDS)
    for reader in cluster.readers:
        reader.end()
    sources = cluster.programs + cluster.readers
    operations = history.read(source.path for source in sources)
    counts, problems = errors.check(operations, cluster.faults)
    for fields, count in sorted(counts.items()):
        print(": ".join(map(str, (*fields, count))))
    assert problems == []
    assert history.check(operations) == []
    # Until the first fault that is not planned.
    end = cluster.faults[2].start
    lost, reads = history.count_lost([one for one in operations if one.end < end])
    assert lost <= reads * (1 - MIN_HIT_RATIO)
    assert reads > 500
    slots = ownership.check(ownership.read(cluster.etcd.endpoint))
    assert slots.problems == []
    nodes = [journal.services(node.name, node.log(), node.exits) for node in cluster.nodes]
    assert journal.check(nodes) == []
    # Each node has lost its slots at least once, and has got slots again.
    assert sum(slots.changes.values()) > 2 * 16384
