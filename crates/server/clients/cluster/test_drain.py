"""Items move with their slots: planned changes of a cluster cost no hits."""

import contextlib
import random
import signal
import threading

import redis
from conftest import is_balanced, is_complete
from processes import until
from redis.exceptions import RedisClusterException

KEYS = 20000
BATCH = 500
MIN_HIT_RATIO = 0.99


class Reader(threading.Thread):
    """Reads random keys until it is stopped."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster = cluster
        self.stopped = threading.Event()
        self.hits = self.misses = 0

    def run(self):
        while not self.stopped.is_set():
            keys = random.sample(range(KEYS), BATCH)
            # A node that ends closes its connections.
            with contextlib.suppress(redis.RedisError, RedisClusterException):
                hits = count_hits(self.cluster, keys)
                self.hits += hits
                self.misses += len(keys) - hits

    def stop(self):
        self.stopped.set()
        self.join()


def value(number):
    """Returns a value of up to 400 bytes, or for one of 100 keys of up to 20,000 bytes."""
    return str(number) * (4000 if number % 100 == 0 else 1 + number % 80)


def write_all(cluster):
    for first in range(0, KEYS, BATCH):
        with cluster.pipeline() as pipeline:
            for number in range(first, first + BATCH):
                # Some expire, long after the test.
                pipeline.set(f"key{number}", value(number), ex=[None, 86400][number % 2])
            assert all(pipeline.execute())


def count_hits(cluster, numbers):
    """Returns how many of these keys are found. Their values must be those that were written."""
    with cluster.pipeline() as pipeline:
        for number in numbers:
            pipeline.get(f"key{number}")
        found = pipeline.execute()
    for number, one in zip(numbers, found, strict=True):
        assert one in (None, value(number).encode()), f"key{number}"
    return sum(one is not None for one in found)


def count_all_hits(cluster):
    return sum(count_hits(cluster, range(first, first + BATCH)) for first in range(0, KEYS, BATCH))


def test_planned_changes_cost_no_hits(nodes, cluster):
    write_all(cluster)
    assert count_all_hits(cluster) == KEYS
    reader = Reader(cluster)
    reader.start()
    try:
        assert nodes[0].end(signal.SIGTERM) == 0
        until("two nodes serve all slots", lambda: is_complete(nodes[1:], 2))
        assert count_all_hits(cluster) >= KEYS * MIN_HIT_RATIO
        nodes[0].start()
        until("the node has its share again", lambda: is_balanced(nodes))
    finally:
        reader.stop()
    assert count_all_hits(cluster) >= KEYS * MIN_HIT_RATIO
    assert reader.hits >= (reader.hits + reader.misses) * MIN_HIT_RATIO
    times = [cluster.ttl(f"key{number}") for number in range(100)]
    assert set(times[0::2]) <= {-1, -2}
    assert all(0 < time <= 86400 or time == -2 for time in times[1::2])
