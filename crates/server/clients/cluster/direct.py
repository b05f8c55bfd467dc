"""Reads keys from one node, as a client does whose map of the cluster is old."""

import contextlib
import random
import socket
import threading
import time

from programs import KEYS

# Enough for one request in each pause while a node is stopped for longer than its lease.
CONNECTIONS = 100
PAUSE_S = 0.1


class Connection:
    """A connection with at most one request in progress."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)

    def send(self, key):
        self.key, self.start, self.received = key, time.monotonic_ns(), b""
        self.socket.sendall(f"GET {key}\r\n".encode())

    def reply(self):
        """Returns the lines of the reply; None if it is not complete."""
        with contextlib.suppress(BlockingIOError):
            data = self.socket.recv(4096)
            if not data:
                raise ConnectionResetError
            self.received += data
        *lines, _ = self.received.split(b"\r\n")
        has_value = self.received[:1] == b"$" and self.received[:2] != b"$-"
        return lines if len(lines) == 1 + has_value else None

    def close(self):
        self.socket.close()


class DirectReader(threading.Thread):
    """Reads keys from one node, and writes a line for each value and each miss.

    Each request has a connection of its own, and does not wait for earlier ones. So a node that was
    stopped has requests to execute as soon as it continues, which were sent when other nodes served
    its slots.
    """

    def __init__(self, node, folder):
        super().__init__(daemon=True)
        self.node = node
        self.path = folder / f"direct.{node.name}.log"
        self.stopped = threading.Event()
        self.idle, self.waiting = [], []
        self.start()

    def run(self):
        with open(self.path, "w", encoding="utf-8") as log:
            while not self.stopped.wait(PAUSE_S):
                self.receive(log)
                # The node may be down.
                with contextlib.suppress(OSError):
                    self.send()
        for connection in self.idle + self.waiting:
            connection.close()

    def receive(self, log):
        waiting, self.waiting = self.waiting, []
        for connection in waiting:
            try:
                lines = connection.reply()
            except OSError:
                connection.close()
                continue
            (self.waiting if lines is None else self.idle).append(connection)
            if lines and lines[0][:1] == b"$":
                result = f"ok\t{lines[1].decode()}" if len(lines) > 1 else "miss\t-"
                fields = (time.monotonic_ns(), self.node.name, "get", connection.key, "-", result)
                log.write("\t".join(map(str, (connection.start, *fields))) + "\n")

    def send(self):
        while len(self.idle) + len(self.waiting) < CONNECTIONS:
            self.idle.append(Connection(self.node.port))
        if self.idle:
            connection = self.idle.pop(0)
            try:
                connection.send(f"key{random.randrange(KEYS)}")
            except OSError:
                connection.close()
            else:
                self.waiting.append(connection)

    def end(self):
        self.stopped.set()
        self.join()
