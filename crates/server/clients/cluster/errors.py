"""The errors that clients of Redis Cluster report when nodes fail."""

import dataclasses
import re
from collections import Counter

# Each error is of the first kind whose pattern its text has. The texts are those of redis-py,
# which has classes for the errors of a cluster, go-redis, ioredis, Jedis and Lettuce.
KINDS = {
    # Also as the last one that an operation had, before the client gave up.
    "CLUSTERDOWN": r"(CLUSTERDOWN|ClusterDownError:) (The cluster is down|Hash slot not served)",
    "TRYAGAIN": r"TRYAGAIN|TryAgainError",
    # The client knows no owner of the slot, or nodes that do not know the same owner.
    "uncovered": r"(?i)not covered|could not agree|no reachable node|cannot determine a partition"
    r"|none of startup nodes|failed to refresh slots|has no nodes",
    "timeout": r"(?i)time(d )?out|deadline",
    "connection": r"(?i)connection (is )?(closed|refused|reset)|closed (network )?connection"
    r"|broken pipe|connecting to|(failed|unable) to connect|not connected|end of stream|EOF",
    "redirections": r"MOVED|MovedError|TTL exhausted|No more cluster attempts left",
}

# What clients may report when slots move between nodes that all work.
MOVES = ("CLUSTERDOWN", "TRYAGAIN", "uncovered", "redirections")
# A slow machine suffices for it.
ALWAYS = ("timeout",)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A time in which clients may have errors of these kinds."""

    name: str
    kinds: tuple
    start: int
    end: int


def kind(text):
    """Returns the kind of an error; `other` if Redis Cluster gives no such error."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text)), "other")


def check(operations, faults):
    """Returns how often each client had each kind of error during each fault, and a text for each
    error that is not permitted."""
    counts, problems = Counter(), []
    for one in operations:
        if one.outcome != "error":
            continue
        found = kind(one.result)
        permitted = [fault for fault in faults if one.start <= fault.end and fault.start <= one.end]
        counts[permitted[0].name if permitted else "no fault", _name(one), found] += 1
        if not any(found in kinds for kinds in (ALWAYS, *(fault.kinds for fault in permitted))):
            names = ", ".join(fault.name for fault in permitted) or "no fault"
            problems.append(f"{names}: {one}")
    return counts, problems


def _name(one):
    """Returns the name of the program of an operation."""
    return one.client.partition(".")[0]
