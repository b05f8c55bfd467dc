"""A network namespace with one link, which can be cut: packets are lost, and no connection is
closed.

The tests run in a network namespace of their own: see `run`.
"""

import itertools
import subprocess

OUTSIDE = "10.77.0.1"
INSIDE = "10.77.0.2"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Namespace:
    """A network namespace whose address is `INSIDE`. That of this process is `OUTSIDE` there."""

    numbers = itertools.count()

    def __init__(self):
        number = next(self.numbers)
        self.link, peer = f"outside{number}", f"inside{number}"
        # It exists as long as this process.
        holder = "ip link set lo up && echo ready && exec cat"
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", holder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.holder.stdout.readline() == b"ready\n"
        pid = str(self.holder.pid)
        self.command = ["nsenter", f"--net=/proc/{pid}/ns/net"]
        ip("link", "add", self.link, "type", "veth", "peer", "name", peer, "netns", pid)
        ip("address", "add", f"{OUTSIDE}/24", "dev", self.link)
        ip("link", "set", self.link, "up")
        self.run("ip", "address", "add", f"{INSIDE}/24", "dev", peer)
        self.run("ip", "link", "set", peer, "up")

    def run(self, *command):
        """Runs a command in the namespace, and returns what it prints."""
        finished = subprocess.run([*self.command, *command], check=True, stdout=subprocess.PIPE)
        return finished.stdout.decode()

    def cut(self):
        ip("link", "set", self.link, "down")

    def heal(self):
        ip("link", "set", self.link, "up")

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
