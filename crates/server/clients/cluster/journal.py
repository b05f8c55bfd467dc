"""Checks the logs of nodes: no slot was served by two nodes at once."""

import datetime
import itertools
import math
import re
from dataclasses import dataclass

SLOTS = 16384

LINE = re.compile(
    r"(?P<time>\S+)Z +INFO nuthatch::cluster: "
    r"the node (?P<kind>begins to serve|no longer serves) slots "
    r"slots=(?P<slots>\S+) epoch=\d+(?: ms_ago=(?P<ms_ago>\d+))?"
)


@dataclass(order=True)
class Service:
    """A time in which a node serves a slot, in seconds."""

    start: float
    end: float
    node: str


def services(node, log, exits):
    """Returns the times in which a node has served each slot, from the log of all its processes.

    Args:
        node: The name of the node.
        log: The text of the log.
        exits: When its processes have ended, which some of them did not log.
    """
    events = [(time, "exits", range(SLOTS)) for time in exits]
    for line in LINE.finditer(log):
        time = datetime.datetime.fromisoformat(line["time"] + "+00:00").timestamp()
        # The time of a line has microseconds, and the age of an end whole milliseconds.
        events.append(
            (
                time - int(line["ms_ago"] or 0) / 1000,
                line["kind"],
                _slots(line["slots"]),
            )
        )
    found, starts = {}, {}
    for time, kind, slots in sorted(events, key=lambda event: event[0]):
        for slot in slots:
            if kind == "begins to serve":
                assert slot not in starts, f"{node} begins to serve slot {slot} again at {time}"
                starts[slot] = time
            elif slot in starts:
                found.setdefault(slot, []).append(Service(starts.pop(slot), time, node))
    for slot, start in starts.items():
        found.setdefault(slot, []).append(Service(start, math.inf, node))
    return found


def _slots(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def check(nodes):
    """Returns a text for each slot that two nodes have served at once, or that none serves at last.

    Args:
        nodes: The times of each node.
    """
    problems = []
    for slot in range(SLOTS):
        times = sorted(time for node in nodes for time in node.get(slot, []))
        for one, other in itertools.pairwise(times):
            if other.start < one.end:
                problems.append(f"slot {slot}: {one} and {other}")
        if not times or times[-1].end < math.inf:
            problems.append(f"slot {slot}: expected a node that serves it, found {times[-1:]}")
    return problems
