"""etcd that has lost its data."""

import shutil

from conftest import is_complete
from processes import Etcd, Node, until


def test_nodes_serve_nothing_until_they_are_started_again(tmp_path):
    etcd = Etcd(tmp_path)
    nodes = []
    try:
        nodes = [Node(tmp_path, f"n{number}", etcd.endpoint) for number in range(2)]
        until("both nodes have slots", lambda: is_complete(nodes, 2))
        etcd.end()
        shutil.rmtree(tmp_path / "etcd")
        etcd.start()
        for node in nodes:
            until("the node reports it", lambda: "etcd has lost data" in node.log())
            until("it serves nothing", lambda: node.info()["cluster_permitted"] == "0")
        for node in nodes:
            node.end()
        for node in nodes:
            node.start()
        until("both nodes have slots", lambda: is_complete(nodes, 2))
    finally:
        for process in [*nodes, etcd]:
            process.process.kill()
