"""Processes of a cluster on this machine: etcd, and nodes."""

import os
import pathlib
import signal
import socket
import subprocess
import time

import redis

PROGRAM = os.environ["NUTHATCH_PROGRAM"]

# Longer than any machine takes: a test that waits so long has failed.
PATIENCE = 60


def until(what, check):
    """Repeats a check until its result is true, and returns the result."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            result = check()
        except redis.RedisError as error:
            result, what = None, f"{what}: {error}"
        if result:
            return result
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Etcd:
    """One server of etcd."""

    def __init__(self, folder):
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.endpoint = client.removeprefix("http://")
        with open(folder / "etcd.log", "wb") as log:
            self.process = subprocess.Popen(
                ["etcd", "--name", "e0", "--data-dir", folder / "etcd", "--unsafe-no-fsync"]
                + ["--listen-client-urls", client, "--advertise-client-urls", client]
                + ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
                + ["--initial-cluster", f"e0={peer}"],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def stop(self):
        self.process.kill()
        self.process.wait()


class Node:
    """A node of the cluster `test`, which keeps its folder when it is started again."""

    def __init__(self, folder, name, etcd, options=()):
        self.folder, self.name, self.etcd, self.options = folder, name, etcd, list(options)
        self.start()

    def start(self):
        # The server would warn of variables that are not its settings.
        names = [name for name in os.environ if not name.startswith("NUTHATCH_")]
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--memory", "32MiB", "--threads", "2", "--admin", "off"]
            + ["--resp", "127.0.0.1:0", "--data-dir", self.folder / self.name]
            + ["--cluster", f"etcd://{self.etcd.endpoint}/test", "--log", "info"]
            + self.options,
            stdout=subprocess.PIPE,
            stderr=open(self.folder / f"{self.name}.log", "ab"),
            text=True,
            env={name: os.environ[name] for name in names},
        )
        # listening at 127.0.0.1:PORT for clients of Redis
        line = self.process.stdout.readline()
        self.port = int(line.split()[2].rpartition(":")[2])

    def log(self):
        """The log of all its processes."""
        return (self.folder / f"{self.name}.log").read_text()

    def client(self):
        """A client of this node alone."""
        return redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=PATIENCE, retry=None)

    def info(self):
        """The fields of CLUSTER INFO."""
        with self.client() as client:
            lines = client.execute_command("CLUSTER INFO")
        if isinstance(lines, dict):
            return lines
        return dict(line.split(":", 1) for line in lines.decode().split())

    def pause(self):
        """Stops the process, and waits until all its threads stand still."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")

        def states():
            # The state follows the name of the thread, which may have spaces.
            return {(task / "stat").read_text().rpartition(") ")[2][0] for task in tasks.iterdir()}

        until("all threads are stopped", lambda: states() == {"T"})

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self, number=signal.SIGKILL):
        """Ends the process, and returns its exit status."""
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)
