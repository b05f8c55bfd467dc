"""The programs that run the workload, one for each client library."""

import os
import pathlib
import subprocess
import sys

from history import Operation
from processes import PATIENCE

FOLDER = pathlib.Path(__file__).parent
INSTALLED = pathlib.Path(os.environ["NUTHATCH_CLIENTS"])
BUILT = pathlib.Path(os.environ["NUTHATCH_WORKLOADS"])

# Short programs run faster with the first compiler alone.
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{BUILT}/classes:{INSTALLED}/java/lib/*"]
COMMANDS = {
    "redis-py": [sys.executable, FOLDER / "workload.py"],
    "go-redis": [BUILT / "go-redis"],
    "ioredis": ["node", FOLDER.parent / "node/cluster/workload.js"],
    "jedis": [*JAVA, "Workload"],
    "lettuce": [*JAVA, "Workload"],
}

# Number of keys of each kind, in all programs.
KEYS = 40
THREADS = 4
PAUSE_MS = 20


class Program:
    """A client program."""

    def __init__(self, name, addresses, folder):
        self.name = name
        self.path = folder / f"{name}.log"
        self.path.touch()
        self.lines = open(self.path, "rb")
        # Operations since the last error.
        self.streak = 0
        arguments = [name, ",".join(addresses), self.path, str(THREADS), str(PAUSE_MS)]
        with open(folder / f"{name}.output", "wb") as output:
            self.process = subprocess.Popen(
                COMMANDS[name] + arguments,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | {"NODE_PATH": str(INSTALLED / "node/node_modules")},
            )

    def count_streak(self):
        """Returns how many operations the program has executed since its last error."""
        assert self.process.poll() is None, f"{self.name} has ended: {self.process.poll()}"
        while (line := self.lines.readline()).endswith(b"\n"):
            is_error = Operation.parse(line.decode()).outcome == "error"
            self.streak = 0 if is_error else self.streak + 1
        # The rest of an incomplete line is read later.
        self.lines.seek(-len(line), os.SEEK_CUR)
        return self.streak

    def end(self):
        """Ends the program after the operations in progress, and returns its exit status."""
        self.process.stdin.close()
        self.lines.close()
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()
