"""The checker of etcd's history, with good and with bad ones."""

import pytest
from ownership import PREFIX, Event, check


def problems(changes):
    """Returns the problems of a history: `+a` and `-a` are nodes, other texts values of a group."""
    events = []
    for revision, change in enumerate(changes, 1):
        if change[0] in "+-":
            value = "protocol 1\n" if change[0] == "+" else None
            events.append(Event(revision, f"{PREFIX}nodes/{change[1:]}", value))
        else:
            events.append(Event(revision, f"{PREFIX}slots/00", change))
    return check(events).problems


GOOD = {
    "an owner dies": ["+a", "+b", "0-63 a 1 taken\n", "-a", "0-63 b 4 taken\n"],
    "a slot moves": [
        "+a",
        "+b",
        "0-63 a 1 taken\n",
        "0-9 a 1 moving b\n10-63 a 1 taken\n",
        "0-9 b 5 received\n10-63 a 1 taken\n",
    ],
    "a move is aborted": ["+a", "+b", "0-1 a 1 taken\n", "0-1 a 1 moving b\n", "0-1 a 1 taken\n"],
    "an owner is there again": ["+a", "0-63 a 1 taken\n", "-a", "+a"],
}

BAD = {
    "the owner has a lease": (
        ["+a", "+b", "0-1 a 1 taken\n", "0-1 b 4 taken\n"],
        "revision 4, slot 0: Ownership(owner='b', epoch=4, state='taken', target=None) has taken "
        "it, but Ownership(owner='a', epoch=1, state='taken', target=None) has a lease",
    ),
    "the epoch stays": (
        ["+a", "+b", "0-1 a 1 taken\n", "-a", "0-1 b 1 taken\n"],
        "revision 5, slot 0: expected an epoch above 1",
    ),
    "the epoch grows for the same owner": (
        ["+a", "0-1 a 1 taken\n", "0-1 a 2 taken\n"],
        "revision 3, slot 0: expected epoch 1 for the same owner, found 2",
    ),
    "the owner has no lease": (
        ["+a", "0-1 b 1 taken\n"],
        "revision 2, slot 0: expected an owner with a lease",
    ),
    "the slot moves to another node": (
        ["+a", "+b", "+c", "0-1 a 1 taken\n", "0-1 a 1 moving b\n", "0-1 c 5 received\n"],
        "revision 6, slot 0: expected a move to the new owner",
    ),
    "the owner is removed": (
        ["+a", "0-1 a 1 taken\n", "1-1 a 1 taken\n"],
        "revision 3, slot 0: Ownership(owner='a', epoch=1, state='taken', target=None) was removed",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history(name):
    assert problems(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history(name):
    changes, problem = BAD[name]
    assert problems(changes)[0].startswith(problem)
