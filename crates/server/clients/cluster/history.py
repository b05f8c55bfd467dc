"""Checks that no client read a value older than one that a client had seen before.

Client programs write one line for each key of each operation, with fields between tabs:

    START END CLIENT OPERATION KEY ARGUMENT OUTCOME RESULT

- START, END: CLOCK_MONOTONIC in nanoseconds, so lines of all programs can be compared.
- OPERATION, ARGUMENT: `get` and `-`; `set` and the value; `incrby` and the amount.
- OUTCOME, RESULT: `ok` and the value that was read, or `-`; `miss` and `-`; `error` and its text.

The method. A key is a register whose value may be lost at any time. Each value is written by one
operation only. The operation may execute more than once, because clients repeat requests, but only
between its start and its end. If its outcome is an error, it may execute at any later time, too, or
never. `INCRBY` reads the value before the addition and writes the value after it; its amounts are
random, so no sum occurs twice.

After the end of a write, its value cannot return once it is gone. So a value that is read after the
end of its write has been there without interruption: from the end of the write until the start of
the last read. No other value, and no miss, may be required within this span. They are required:

- another value that has such a span: somewhere in its span;
- a write that was acknowledged: between its start and its end;
- a read of a value: within the read, and not after the end of the value's write;
- a miss: within the read.

If each of these has a point outside the spans of all other values, an order of executions exists
that explains all results: each point becomes an execution of its own. So the check is exact, for
writes that may be repeated. It takes O(n log n) time for n operations of a key.
"""

import bisect
import dataclasses
import math
from collections import defaultdict


# Increments without a response before a read, any of which may have been executed.
MAX_LOST = 12


@dataclasses.dataclass(frozen=True)
class Operation:
    """One line of a client program."""

    start: int
    end: int
    client: str
    operation: str
    key: str
    argument: str
    outcome: str
    result: str

    @classmethod
    def parse(cls, line):
        start, end, *rest = line.rstrip("\n").split("\t")
        if len(rest) != 6:
            raise ValueError(f"expected 8 fields between tabs, found {line!r}")
        return cls(int(start), int(end), *rest)


@dataclasses.dataclass
class Register:
    """What the operations of one key have written and read."""

    # The start and the end of the write of each value.
    writes: dict = dataclasses.field(default_factory=dict)
    # Value, start and end of each read. The value of a miss is None.
    reads: list = dataclasses.field(default_factory=list)
    problems: list = dataclasses.field(default_factory=list)


def read(paths):
    """Returns the operations in files of client programs."""
    operations = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            # A program that was killed may have written a part of its last line.
            operations += [Operation.parse(line) for line in file if line.endswith("\n")]
    return operations


def check(operations):
    """Returns a text for each result that no order of executions explains."""
    keys = defaultdict(list)
    for operation in operations:
        keys[operation.key].append(operation)
    problems = []
    for key, of_key in sorted(keys.items()):
        register = _register(of_key)
        _check_written(register)
        spans = _check_spans(register)
        _check_points(register, spans)
        problems += [f"{key}: {problem}" for problem in register.problems]
    return problems


def count_lost(operations):
    """Returns how many reads missed a key that was written before them, and how many reads there
    were. `INCRBY` is not a read here."""
    written = {}
    for one in operations:
        if one.operation != "get" and one.outcome == "ok":
            written[one.key] = min(one.end, written.get(one.key, one.end))
    reads = [one for one in operations if one.operation == "get"]
    reads = [one for one in reads if one.start > written.get(one.key, math.inf)]
    return sum(one.outcome == "miss" for one in reads), len(reads)


def _register(operations):
    register = Register()
    increments = []
    for one in operations:
        is_done = one.outcome == "ok"
        end = one.end if is_done else math.inf
        if one.operation == "get" and one.outcome != "error":
            value = one.result if is_done else None
            register.reads.append((value, one.start, one.end))
        elif one.operation == "set":
            register.writes[one.argument] = (one.start, end)
        elif one.operation == "incrby":
            increments.append(one)
    _add_increments(register, increments)
    return register


def _add_increments(register, increments):
    """Adds increments, each as a read and a write."""
    amounts = [0] + [int(one.argument) for one in increments]
    pairs = {first + second for first in amounts for second in amounts}
    done = [one for one in increments if one.outcome == "ok"]
    for one in done:
        register.writes[one.result] = (one.start, one.end)
    # A missing key counts as 0.
    known = {0} | {int(one.result) for one in done}
    seen = {}
    for one in sorted(done, key=_start):
        before = int(one.result) - int(one.argument)
        register.reads.append((str(before) if before else None, one.start, one.end))
        if before and before in seen:
            register.problems.append(f"both {seen[before]} and {one} have added to {before}")
        seen[before] = one
        errors = [last for last in increments if last.outcome == "error" and last.start < one.end]
        lost = [int(last.argument) for last in sorted(errors, key=_start)[-MAX_LOST:]]
        if before not in known and _is_sum(before, known, pairs, lost):
            # Increments without a response, or repeated ones. A client may send several at once
            # when it is connected again.
            known.add(before)
            register.writes[str(before)] = (0, math.inf)


def _start(one):
    return one.start


def _is_sum(value, known, pairs, lost):
    """Whether a value is a known one and at most four amounts, or any of the lost ones."""
    sums = {0}
    for amount in lost:
        sums |= {one + amount for one in sums}
    if any(value - one in sums for one in known):
        return True
    return any(value - one - pair in pairs for one in known for pair in pairs)


def _check_written(register):
    """Checks that each value was written before it was read, and drops reads for which not."""
    kept = []
    for value, start, end in register.reads:
        written = register.writes.get(value, (math.inf, 0))[0] if value else 0
        if written == math.inf:
            register.problems.append(f"read at {start} the value {value}, which no client wrote")
        elif end < written:
            register.problems.append(f"read at {start} the value {value}, written at {written}")
        else:
            kept.append((value, start, end))
    register.reads = kept


def _check_spans(register):
    """Returns start, end and value of the spans in which a value must have been there without
    interruption, in order, and notes those that overlap."""
    last_reads = defaultdict(int)
    for value, start, _ in register.reads:
        last_reads[value] = max(last_reads[value], start)
    spans = []
    for value, (_, end) in register.writes.items():
        if last_reads[value] > end:
            spans.append((end, last_reads[value], value))
    spans.sort()
    apart = []
    for span in spans:
        if apart and span[0] < apart[-1][1]:
            register.problems.append(f"{_span(apart[-1])}, but {_span(span)}")
            # Later spans are compared with the one that ends later.
            apart[-1] = max(apart[-1], span, key=lambda one: one[1])
        else:
            apart.append(span)
    return apart


def _check_points(register, spans):
    """Checks that writes and reads have a point outside the spans of other values."""
    points = []
    for value, (start, end) in register.writes.items():
        if end < math.inf:
            points.append((start, end, value, "written"))
    for value, start, end in register.reads:
        if value is None:
            points.append((start, end, None, "missed"))
            continue
        written, acknowledged = register.writes[value]
        if start <= acknowledged:
            points.append((max(start, written), min(end, acknowledged), value, "read"))
    for start, end, value, what in points:
        at = bisect.bisect_left(spans, (start,)) - 1
        if at >= 0 and end < spans[at][1] and spans[at][2] != value:
            subject = "the key" if value is None else value
            problem = f"{subject} was {what} between {start} and {end}"
            register.problems.append(f"{_span(spans[at])}, but {problem}")


def _span(span):
    acknowledged, last_read, value = span
    return f"{value} was acknowledged at {acknowledged} and still read at {last_read}"
