"""What `nuthatch cluster` shows of a cluster, and what it changes."""

import json
import signal
import subprocess

from conftest import is_balanced, is_complete
from processes import PROGRAM, until


def run(node, *words):
    """Runs `nuthatch cluster` for a node. Returns the exit status and the object that it prints."""
    command = [PROGRAM, "cluster", *words, "--server", f"127.0.0.1:{node.port}", "--json"]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, json.loads(result.stdout) if result.stdout else result.stderr


def slots(node):
    """The slots of each node, by its port, and its state, as one node knows them."""
    nodes = run(node, "status")[1]["nodes"]
    return {int(one["address"].split(":")[1]): (one["state"], one["slots"]) for one in nodes}


def test_nodes_drain_join_and_are_forgotten(nodes, write):
    assert write(100, 1) == 0
    status, found = run(nodes[0], "status")
    assert (status, found["problems"]) == (0, [])
    assert found["slots"] == {"total": 16384, "covered": 16384, "served": 16384}
    assert sum(one["items"] for one in found["nodes"]) == 100
    one, other = nodes[1], nodes[2]
    status, drained = run(nodes[0], "drain", f"127.0.0.1:{one.port}")
    assert status == 0 and 5461 <= drained["slots"] <= 5462 and len(drained["moves"]) == 2
    assert slots(nodes[0])[one.port] == ("draining", 0)
    status, joined = run(other, "join", drained["node"][:12])
    assert (status, joined["slots"]) == (0, 5461)
    assert write(100, 2) == 0
    # Its items are lost, so it needs --yes.
    status, problem = run(nodes[0], "forget", f"127.0.0.1:{other.port}")
    assert status == 2 and "expected --yes" in problem
    assert run(nodes[0], "forget", f"127.0.0.1:{other.port}", "--yes")[0] == 0
    assert write(100, 3) == 0
    until("it waits", lambda: slots(nodes[0]).get(other.port) == ("waiting", 0))
    assert run(nodes[0], "rebalance")[1]["waiting"] != []
    other.end()
    until("a node is gone", lambda: run(nodes[0], "status")[0] == 1)


def test_the_slots_of_a_stopped_node_wait_until_it_is_forgotten(nodes):
    stopped, other = nodes[0], nodes[1]
    stopped.end(signal.SIGTERM)
    stopped.options = ("--disk", "64MiB")
    stopped.start()
    until("the node has its share again", lambda: is_balanced(nodes))
    assert stopped.end(signal.SIGTERM) == 0
    until("the others know it", lambda: slots(other)[stopped.port][0] == "stopped")
    share = slots(other)[stopped.port][1]
    status, found = run(other, "status")
    assert status == 1
    problem = f"({stopped.resp()}) has stopped, and {share:,} slots wait for its next start"
    assert sum(problem in one for one in found["problems"]) == 1, found["problems"]
    assert int(other.info()["cluster_slots_ok"]) == 16384 - share
    assert run(other, "forget", stopped.resp(), "--yes")[0] == 0
    assert is_complete(nodes[1:], 2)
