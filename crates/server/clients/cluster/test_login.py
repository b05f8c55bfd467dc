"""A node whose etcd requires a login."""

import os
import signal
import subprocess

import pytest
from conftest import is_complete
from processes import Etcd, Node, until


@pytest.fixture
def etcd(tmp_path):
    etcd = Etcd(tmp_path)
    yield etcd
    etcd.end()


def etcdctl(etcd, *arguments):
    command = ["etcdctl", "--endpoints", etcd.endpoint, "--command-timeout=20s", *arguments]
    environment = os.environ | {"ETCDCTL_API": "3"}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def test_a_password_is_reloaded_and_problems_are_logged_once(tmp_path, etcd):
    for arguments in [
        ["user", "add", "root:r00t"],
        ["user", "grant-role", "root", "root"],
        ["role", "add", "node"],
        ["role", "grant-permission", "node", "--prefix=true", "readwrite", "/nuthatch/test/"],
        ["user", "add", "node:s3cret"],
        ["user", "grant-role", "node", "node"],
        ["auth", "enable"],
    ]:
        etcdctl(etcd, *arguments)
    password = tmp_path / "password"
    password.write_text("wr0ng\n")
    password.chmod(0o600)
    options = ["--etcd-user", "node", "--etcd-password-file", password]
    node = Node(tmp_path, "node", etcd.endpoint, *options)
    try:
        # By then, the node has tried to log in more than once.
        until("the node has no lease", lambda: "the node has no lease in etcd" in node.log())
        assert node.log().count("WARN nuthatch::cluster: etcd refuses the login; check") == 1
        password.write_text("s3cret\n")
        node.process.send_signal(signal.SIGHUP)
        until("the node serves all slots", lambda: is_complete([node], 1))
        assert node.end(signal.SIGTERM) == 0
        log = node.log()
        assert log.count("a problem with etcd has ended") == 1, log
        assert "wr0ng" not in log and "s3cret" not in log
    finally:
        node.process.kill()
