"""The checker of histories, with good and with bad ones."""

import random

import pytest
from history import Operation, check, count_lost, read


def history(text):
    """Returns the operations of a text: START-END OPERATION [ARGUMENT] [= RESULT | miss | error]"""
    operations = []
    for line in text.split(";"):
        words = line.split()
        start, end = words[0].split("-")
        outcome, result = "ok", "-"
        if words[-1] in ("miss", "error"):
            outcome = words.pop()
        elif "=" in words:
            result = words.pop()
            words.pop()
        argument = words[2] if len(words) > 2 else "-"
        fields = (int(start), int(end), "one", words[1], "key", argument, outcome, result)
        operations.append(Operation(*fields))
    return operations


GOOD = {
    "reads follow writes": "0-1 set a; 2-3 get = a; 4-5 set b; 6-7 get = b",
    "a lost item": "0-1 set a; 2-3 get miss; 4-5 get miss; 6-7 set b; 8-9 get = b",
    "concurrent writes in any order": "0-9 set a; 1-8 set b; 10-11 get = a; 12-13 get = a",
    "a read during a write": "0-1 set a; 2-9 set b; 3-4 get = b; 5-9 get = b",
    "a write that was repeated": "0-9 set a; 1-2 get = a; 3-4 set b; 5-6 get = b; 7-8 get = a",
    "a late write": "0-1 set a error; 2-3 set b; 4-5 get = b; 6-7 get = a",
    "a late write that was repeated": "0-1 set a error; 2-3 get = a; 4-5 set b; 6-7 get = a",
    "a write that never took effect": "0-1 set a; 2-3 set b error; 4-5 get = a",
    "a miss before the write ends": "0-5 set a; 2-3 get miss; 6-7 get = a",
    "a miss while a value returns": "0-1 set a; 2-9 get miss; 3-4 get = a; 7-8 get = a",
    "reads that failed": "0-1 set a; 2-3 get error; 4-5 get = a",
    "sums": "0-1 incrby 5 = 5; 2-3 incrby 7 = 12; 4-5 incrby 9 = 21",
    "a sum that was lost": "0-1 incrby 5 = 5; 2-3 incrby 7 = 7; 4-5 incrby 9 = 16",
    "an increment without a response": "0-1 incrby 5 = 5; 2-3 incrby 70 error; 4-5 incrby 9 = 84",
    "increments without a response": (
        "0-1 incrby 5 = 5; 2-3 incrby 70 error; 2-3 incrby 200 error; 2-3 incrby 3000 error;"
        "2-3 incrby 10000 error; 4-5 incrby 9 = 13284"
    ),
    "six increments without a response": (
        "0-1 incrby 5 = 5; 2-3 incrby 70 error; 2-3 incrby 200 error; 2-3 incrby 3000 error;"
        "2-3 incrby 10000 error; 2-3 incrby 40000 error; 2-3 incrby 500000 error;"
        "4-5 incrby 9 = 553284"
    ),
    "an increment that was repeated": "0-1 incrby 5 = 5; 2-3 incrby 70 = 145; 4-5 incrby 9 = 154",
}

BAD = {
    "a value that no client wrote": (
        "0-1 set a; 2-3 get = b",
        "key: read at 2 the value b, which no client wrote",
    ),
    "a value from the future": (
        "0-1 get = a; 2-3 set a",
        "key: read at 0 the value a, written at 2",
    ),
    "an overwritten value": (
        "0-1 set a; 2-3 set b; 4-5 get = a",
        "key: a was acknowledged at 1 and still read at 4, but b was written between 2 and 3",
    ),
    "an overwritten value, after it was read": (
        "0-1 set a; 2-9 set b error; 4-5 get = b; 6-7 get = a",
        "key: a was acknowledged at 1 and still read at 6, but b was read between 4 and 5",
    ),
    "two values in turn": (
        "0-9 set a; 0-9 set b; 10-11 get = a; 12-13 get = b; 14-15 get = a",
        "key: b was acknowledged at 9 and still read at 12, "
        "but a was acknowledged at 9 and still read at 14",
    ),
    "a lost value that returns": (
        "0-1 set a; 2-3 get miss; 4-5 get = a",
        "key: a was acknowledged at 1 and still read at 4, but the key was missed between 2 and 3",
    ),
    "a value that nearly all reads agree on": (
        "0-1 set a; 2-3 set b; 4-5 get = b; 6-7 get = b; 6-8 get = a; 9-10 get = b",
        "key: a was acknowledged at 1 and still read at 6, "
        "but b was acknowledged at 3 and still read at 9",
    ),
    "a lost increment": (
        "0-1 incrby 5 = 5; 2-5 incrby 7 = 12; 3-4 incrby 9 = 14",
        "have added to 5",
    ),
    "a sum of an old value": (
        "0-1 incrby 5 = 5; 2-3 incrby 7 = 12; 4-5 incrby 9 = 14",
        "key: 5 was acknowledged at 1 and still read at 4, but 12 was written between 2 and 3",
    ),
    "a sum that no increments explain": (
        "0-1 incrby 5 = 5; 2-3 incrby 7 = 99",
        "key: read at 2 the value 92, which no client wrote",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history(name):
    assert check(history(GOOD[name])) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history(name):
    text, problem = BAD[name]
    assert problem in "\n".join(check(history(text)))


def has_order(operations):
    """Whether an order of executions explains all results, by trying all orders."""
    writes = {one.argument: one for one in operations if one.operation == "set"}
    required = {one for one in operations if one.outcome != "error"}
    # The value at a time, and what is explained by the values so far.
    states = {(None, frozenset())}
    for time in range(1, 9):
        after = set()
        for value in [None, *writes]:
            now = frozenset(one for one in required if explains(value, one, time))
            begins = value is None or may_execute(writes[value], time)
            after |= {(value, old | now) for before, old in states if begins or before == value}
        states = after
    return any(explained == required for _, explained in states)


def may_execute(one, time):
    return one.start <= time and (one.outcome == "error" or time <= one.end)


def explains(value, one, time):
    expected = one.argument if one.operation == "set" else one.result
    expected = None if one.outcome == "miss" else expected
    return one.start <= time <= one.end and value == expected


def test_random_histories_against_all_orders():
    """No two operations start or end at the same time, so whole numbers suffice as times."""
    chance = random.Random(7)
    found = {True: 0, False: 0}
    for _ in range(500):
        times = iter(chance.sample(range(1, 9), 8))
        operations = []
        for kind in ("set a", "set b", chance.choice(("get", "set c")), "get"):
            start, end = sorted((next(times), next(times)))
            text = kind
            if kind == "get":
                text += chance.choice((" = a", " = b", " miss"))
            elif chance.random() < 0.3:
                text += " error"
            operations += history(f"{start}-{end} {text}")
        expected = has_order(operations)
        assert (check(operations) == []) == expected, operations
        found[expected] += 1
    assert min(found.values()) > 50, found


def test_lost_items_are_counted():
    text = "0-1 get miss; 2-9 set a; 3-4 get miss; 5-8 set b; 9-10 get = b; 11-12 get miss"
    assert count_lost(history(text)) == (1, 2)


def test_a_line_is_complete(tmp_path):
    path = tmp_path / "one"
    path.write_text("1\t2\tone.0\tget\tkey\t-\tok\tvalue\n3\t4\tone.0\tge")
    assert read([path]) == [Operation(1, 2, "one.0", "get", "key", "-", "ok", "value")]
    path.write_text("1\t2\tone.0\tget\tkey\n")
    with pytest.raises(ValueError, match="expected 8 fields between tabs, found"):
        read([path])
