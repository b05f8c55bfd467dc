"""The checker of the logs of nodes, with good and with bad ones."""

import datetime

import journal
import pytest


def problems(*logs):
    """Returns the problems of logs: `+3` and `-4 2000` in the lines `SECOND CHANGE`, `x` for the
    end of a process."""
    nodes = []
    for name, log in zip("abc", logs, strict=False):
        text, exits = "", []
        for change in log.split(";"):
            second, kind, *ago = change.split()
            time = f"2026-01-02T03:04:{int(second):02}.000000"
            if kind == "x":
                exits.append(datetime.datetime.fromisoformat(f"{time}+00:00").timestamp())
            elif kind == "+":
                text += line(time, "begins to serve", "")
            else:
                text += line(time, "no longer serves", f" ms_ago={ago[0] if ago else 0}")
        nodes.append(journal.services(name, text, exits))
    return journal.check(nodes)


def line(time, kind, rest):
    text = f"the node {kind} slots slots=0-9,11,12-16383,10 epoch=7{rest}"
    return f"{time}Z  INFO nuthatch::cluster: {text}\n"


GOOD = {
    "one node": ["1 +"],
    "a move": ["1 +;5 -", "5 +"],
    "a permit that has ended before": ["1 +;30 - 20000", "11 +"],
    "a process that was killed": ["1 +;8 x;30 +;31 -", "9 +;29 -;32 +"],
}
BAD = {
    "both serve": (["1 +;5 -", "4 +"], "slot 0: Service(start="),
    "a stopped process served on": (["1 +;30 - 0", "11 +"], "slot 0: Service(start="),
    "no node serves at last": (
        ["1 +;5 -", "6 +;7 -"],
        "slot 0: expected a node that serves it",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_log(name):
    assert problems(*GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_log(name):
    logs, problem = BAD[name]
    found = problems(*logs)
    assert len(found) == journal.SLOTS
    assert found[0].startswith(problem)
