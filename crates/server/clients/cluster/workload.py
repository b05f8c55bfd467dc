"""The workload of ../README.md with redis-py's RedisCluster."""

import random
import sys
import threading
import time

from redis.cluster import ClusterNode, RedisCluster

NAME, ADDRESSES, PATH, THREADS, PAUSE_MS = sys.argv[1:]

# Number of keys of each kind.
KEYS = 40


class Thread(threading.Thread):
    """A thread that executes operations until the event is set."""

    def __init__(self, number, redis, log, stopped):
        super().__init__()
        self.client, self.redis, self.log, self.stopped = f"{NAME}.{number}", redis, log, stopped

    def run(self):
        number = 0
        while not self.stopped.wait(int(PAUSE_MS) / 1000):
            number += 1
            self.step(random.randrange(KEYS), f"{self.client}.{number}")

    def step(self, number, value):
        """Executes an operation with keys of this number, or writes this value."""
        redis, key, total = self.redis, f"key{number}", f"sum{number}"
        pair = [f"{{pair{number}}}a", f"{{pair{number}}}b"]
        match random.randrange(8):
            case 0 | 1:
                self.execute("get", [key], "-", lambda: [redis.get(key)])
            case 2 | 3:
                self.execute("set", [key], value, lambda: redis.set(key, value) and ["-"])
            case 4 | 5:
                self.execute("get", pair, "-", lambda: redis.mget(pair))
            case 6:
                pairs = dict.fromkeys(pair, value)
                self.execute("set", pair, value, lambda: redis.mset(pairs) and ["-", "-"])
            case 7:
                amount = random.randrange(1, 1 << 40)
                self.execute("incrby", [total], amount, lambda: [redis.incrby(total, amount)])

    def execute(self, operation, keys, argument, call):
        """Calls a function, and writes a line with its result for each key."""
        start = time.monotonic_ns()
        try:
            results, outcome = call(), "ok"
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            results, outcome = [text] * len(keys), "error"
        end = time.monotonic_ns()
        lines = ""
        for key, result in zip(keys, results, strict=True):
            end_of_line = ("miss", "-") if result is None else (outcome, result)
            fields = (start, end, self.client, operation, key, argument, *end_of_line)
            lines += "\t".join(map(str, fields)) + "\n"
        self.log.write(lines)


def main():
    nodes = [ClusterNode(*address.split(":")) for address in ADDRESSES.split(",")]
    options = {"socket_timeout": 1, "require_full_coverage": False, "decode_responses": True}
    stopped = threading.Event()
    with (
        RedisCluster(startup_nodes=nodes, **options) as redis,
        # Each write is one call of the system, so lines of threads do not mix.
        open(PATH, "a", encoding="utf-8", buffering=1) as log,
    ):
        threads = [Thread(number, redis, log, stopped) for number in range(int(THREADS))]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        stopped.set()
        for thread in threads:
            thread.join()


main()
