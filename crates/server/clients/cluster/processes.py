"""Processes of a cluster on this machine: etcd, and nodes."""

import contextlib
import os
import pathlib
import random
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


used_ports = set()


def free_port():
    """Returns another port of all addresses with each call.

    It stays free while its server is down: it is below the ports that the kernel gives to clients.
    """
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10000, max(first, 20000))
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("0.0.0.0", port))
            if port not in used_ports:
                used_ports.add(port)
                return port


class Server:
    """A process that can be stopped and continued."""

    process: subprocess.Popen

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
        return self.wait()

    def wait(self):
        """Waits until the process has ended, and returns its exit status."""
        return self.process.wait(PATIENCE)


class Etcd(Server):
    """One server of etcd, which keeps its data when it is started again."""

    def __init__(self, folder, host="127.0.0.1"):
        self.folder = folder
        self.endpoint, self.peer = (f"{host}:{free_port()}" for _ in range(2))
        self.start()

    def start(self):
        client, peer = f"http://{self.endpoint}", f"http://{self.peer}"
        with open(self.folder / "etcd.log", "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--name", "e0", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync"]
                + ["--listen-client-urls", client, "--advertise-client-urls", client]
                + ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
                + ["--initial-cluster", f"e0={peer}"],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )


class Node(Server):
    """A node of the cluster `test`, which keeps its folder and its port for the next start."""

    def __init__(self, folder, name, endpoint, *options, host="127.0.0.1", command=()):
        self.folder, self.name, self.endpoint, self.options = folder, name, endpoint, options
        # `command` runs the program, in another namespace for example.
        self.host, self.command = host, command
        self.port = free_port()
        # When its processes have ended.
        self.exits = []
        self.start()

    def end(self, number=signal.SIGKILL):
        status = super().end(number)
        self.exits.append(time.time())
        return status

    def start(self, is_node=True):
        """Starts it, or a server with the same folder that is in no cluster."""
        cluster = ["--cluster", f"etcd://{self.endpoint}/test", *self.options]
        alone = [one for one in self.options if not str(one).startswith("--cluster")]
        # The server would warn of variables that are not its settings.
        names = [name for name in os.environ if not name.startswith("NUTHATCH_")]
        self.process = subprocess.Popen(
            [*self.command, PROGRAM, "serve", "--memory", "32MiB", "--threads", "2"]
            + ["--admin", "off", "--resp", self.resp(), "--data-dir", self.folder / self.name]
            + ["--log", "info", *(cluster if is_node else alone)],
            stdout=subprocess.PIPE,
            stderr=open(self.folder / f"{self.name}.log", "ab"),
            text=True,
            env={name: os.environ[name] for name in names},
        )
        line = self.process.stdout.readline()
        assert line.endswith(" for clients of Redis\n"), f"{line!r}; see {self.name}.log"

    def resp(self):
        """The address for clients."""
        return f"{self.host}:{self.port}"

    def log(self):
        """The log of all its processes."""
        return (self.folder / f"{self.name}.log").read_text()

    def client(self):
        """A client of this node alone."""
        return redis.Redis(host=self.host, port=self.port, socket_timeout=PATIENCE, retry=None)

    def info(self):
        """The fields of CLUSTER INFO."""
        with self.client() as client:
            lines = client.execute_command("CLUSTER INFO")
        if isinstance(lines, dict):
            return lines
        return dict(line.split(":", 1) for line in lines.decode().split())
