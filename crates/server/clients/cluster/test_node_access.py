"""Nodes that authenticate each other: with client certificates, and as a user of their own."""

import hashlib
import signal
import subprocess

import pytest
import redis
from conftest import is_balanced
from processes import PATIENCE, Etcd, Node, until

NOT_MOVED = "slots were not moved to another node"


class SecureNode(Node):
    """A node that requires a client certificate and a login of all clients and nodes."""

    def __init__(self, folder, name, endpoint, issuer, node_password):
        self.files = folder / f"{name}-files"
        self.files.mkdir()
        self.install(issuer)
        self.write_password(node_password)
        sha256 = hashlib.sha256(b"n0de").hexdigest()
        users = f"user node on #{sha256} -@all +cluster|transfer\nuser ops on >0ps allkeys +@all\n"
        self.write("users", f"user default off\n{users}")
        certificates = [
            "--tls-cert",
            self.files / "cert.pem",
            "--tls-key",
            self.files / "key.pem",
        ]
        issuers = [
            "--tls-client-ca",
            self.files / "ca.pem",
            "--node-ca",
            self.files / "ca.pem",
        ]
        login = ["--node-user", "node", "--node-password-file", self.files / "password"]
        options = [*certificates, *issuers, *login, "--users", self.files / "users"]
        super().__init__(folder, name, endpoint, *options)

    def resp(self):
        return f"tls:{super().resp()}"

    def write(self, name, text):
        path = self.files / name
        path.write_text(text)
        path.chmod(0o600)

    def write_password(self, password):
        self.write("password", f"{password}\n")

    def install(self, issuer):
        """Replaces the certificate, its key, and the issuer of other certificates."""
        for name in ("ca.pem", "cert.pem", "key.pem"):
            self.write(name, (issuer / name).read_text())

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def client(self):
        tls = {f"ssl_{kind}": self.files / f"{name}.pem" for kind, name in TLS_FILES.items()}
        login = {"username": "ops", "password": "0ps"}
        options = {"socket_timeout": PATIENCE, "retry": None, "ssl": True}
        return redis.Redis(host="127.0.0.1", port=self.port, **tls, **login, **options)


TLS_FILES = {"ca_certs": "ca", "certfile": "cert", "keyfile": "key"}


def issuer(folder):
    """Creates an issuer, and a certificate of it for servers and clients at 127.0.0.1."""
    folder.mkdir()
    key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    issuer = ["-x509", "-subj", f"/CN={folder.name}", "-keyout", "issuer.key", "-out", "ca.pem"]
    certificate = [
        "-x509",
        "-subj",
        "/CN=node",
        "-CA",
        "ca.pem",
        "-CAkey",
        "issuer.key",
    ]
    certificate += ["-addext", "subjectAltName=IP:127.0.0.1"]
    certificate += ["-addext", "basicConstraints=critical,CA:FALSE"]
    certificate += ["-keyout", "key.pem", "-out", "cert.pem"]
    for arguments in (issuer, certificate):
        command = ["openssl", "req", *key, *arguments]
        subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    return folder


@pytest.fixture
def etcd(tmp_path):
    etcd = Etcd(tmp_path)
    yield etcd
    etcd.end()


def test_certificates_and_the_password_of_nodes_are_reloaded(tmp_path, etcd):
    old, new = issuer(tmp_path / "old"), issuer(tmp_path / "new")
    nodes = [SecureNode(tmp_path, "first", etcd.endpoint, old, "0ld")]
    try:
        until("the first node serves all slots", lambda: is_balanced(nodes))
        nodes.append(SecureNode(tmp_path, "second", etcd.endpoint, new, "n0de"))
        first = nodes[0]

        def until_refused(reason):
            def is_logged():
                return any(NOT_MOVED in line and reason in line for line in first.log().split("\n"))

            until(f"no slots move: {reason}", is_logged)

        until_refused("UnknownIssuer")
        first.install(new)
        first.reload()
        until_refused("WRONGPASS")
        first.write_password("n0de")
        first.reload()
        until("both nodes share the slots", lambda: is_balanced(nodes))
        log = first.log() + nodes[1].log()
        assert "0ld" not in log and "n0de" not in log
    finally:
        for node in nodes:
            node.process.kill()
