"""A cache server of a benchmark, a connection to it, and the load generator."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start(core: int, command: list[str], *, idle: bool = False) -> "subprocess.Popen[bytes]":
    """Starts a program on one core. With `idle`, it only runs when no other needs the core."""
    policy = ["chrt", "--idle", "0"] if idle else []
    return subprocess.Popen(
        [*policy, "taskset", "-c", str(core), *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class Server:
    """A running server with one worker thread."""

    def __init__(self, options: list[str], *, core: int = 0, idle: bool = False) -> None:
        self.port = free_port()
        command = [str(RELEASE / "nuthatch"), "serve", "--resp", f"127.0.0.1:{self.port}"]
        command += ["--threads", "1", "--admin", "off", "--memcache", "off", *options]
        self.started = time.monotonic()
        self.process = start(core, command, idle=idle)
        while True:
            try:
                self.connection = socket.create_connection(("127.0.0.1", self.port))
                break
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    sys.exit(f"{sys.argv[0]}: the server has ended: {' '.join(command)}")
                time.sleep(0.002)
        self.replies = self.connection.makefile("rb")

    def ask(self, *words: str) -> str:
        """Returns the reply to a command that replies with a bulk string or an integer."""
        self.connection.sendall((" ".join(words) + "\r\n").encode())
        line = self.replies.readline().decode()
        length = re.match(r"\$(\d+)", line)
        return self.replies.read(int(length[1]) + 2).decode() if length else line[1:].strip()

    def field(self, name: str, *command: str) -> int:
        """Returns a number that a command such as `INFO` replies with."""
        found = re.search(rf"^{name}:(\d+)", self.ask(*command), re.MULTILINE)
        assert found, name
        return int(found[1])

    def load(self, *options: str) -> dict[str, float]:
        """Loads the server from core 1, and returns the report of the generator."""
        command = [str(RELEASE / "load"), "--address", f"127.0.0.1:{self.port}", "--json"]
        ran = subprocess.run([*command, "--core", "1", *options], capture_output=True, text=True)
        if not ran.stdout:
            raise RuntimeError(ran.stderr)
        return json.loads(ran.stdout)

    def stop(self, how: int) -> float:
        """Sends a signal, and returns how many seconds the stop took."""
        begun = time.monotonic()
        self.process.send_signal(how)
        self.process.wait()
        return time.monotonic() - begun
