"""Checks the history of a cluster in etcd: no slot ever had two owners.

The formats of the keys and the transactions are in docs/formats/cluster.md.
"""

import base64
import dataclasses
import http.client
import itertools
import json

PREFIX = "/nuthatch/test/"


@dataclasses.dataclass(frozen=True)
class Event:
    """A change of a key. A deleted key has no value."""

    revision: int
    key: str
    value: str | None


@dataclasses.dataclass(frozen=True)
class Ownership:
    """The ownership of a slot. The target is another node if the slot moves to it."""

    owner: str
    epoch: int
    state: str
    target: str | None


def read(endpoint):
    """Returns all changes of the keys of the cluster, in order."""
    end = f"{PREFIX}end-of-history"
    connection = http.client.HTTPConnection(endpoint, timeout=60)
    connection.request("POST", "/v3/kv/put", json.dumps({"key": _encode(end), "value": ""}))
    connection.getresponse().read()
    # The end of the range is the prefix with its last byte incremented.
    keys = {"key": _encode(PREFIX), "range_end": _encode(PREFIX[:-1] + "0")}
    body = {"create_request": {**keys, "start_revision": "1"}}
    connection.request("POST", "/v3/watch", json.dumps(body))
    events = []
    with connection.getresponse() as response:
        for line in response:
            events += map(_event, json.loads(line)["result"].get("events", []))
            if events and events[-1].key == end:
                return events[:-1]
    raise ConnectionError("expected all changes of the keys from etcd, found the end of the stream")


def _event(found):
    kv = found["kv"]
    key = base64.b64decode(kv["key"]).decode()
    value = base64.b64decode(kv.get("value", "")).decode()
    is_deleted = found.get("type") == "DELETE"
    return Event(int(kv["mod_revision"]), key, None if is_deleted else value)


def _encode(text):
    return base64.b64encode(text.encode()).decode()


@dataclasses.dataclass
class History:
    """The nodes and the owners of slots at a revision, and what was wrong until then."""

    nodes: set = dataclasses.field(default_factory=set)
    slots: dict = dataclasses.field(default_factory=dict)
    problems: list = dataclasses.field(default_factory=list)
    # How many slots had another owner than before, by the state that began.
    changes: dict = dataclasses.field(default_factory=lambda: {"taken": 0, "received": 0})

    def apply(self, revision, events):
        """Applies the changes of one transaction."""
        for event in events:
            kind, _, name = event.key.removeprefix(PREFIX).partition("/")
            if kind == "slots":
                self._apply_group(revision, int(name, 16), event.value or "")
        # Transactions compare the nodes before them.
        for event in events:
            kind, _, name = event.key.removeprefix(PREFIX).partition("/")
            if kind == "nodes":
                (self.nodes.discard if event.value is None else self.nodes.add)(name)

    def _apply_group(self, revision, group, value):
        after = parse(value)
        for slot in range(group * 64, group * 64 + 64):
            problem = self._change(self.slots.get(slot), after.get(slot))
            if problem:
                self.problems.append(f"revision {revision}, slot {slot}: {problem}")
        self.slots.update(after)

    def _change(self, before, after):
        """Returns what is wrong with a change of the ownership of a slot."""
        if after is None:
            return before and f"{before} was removed"
        if before is None or after.owner != before.owner:
            self.changes[after.state] = self.changes.get(after.state, 0) + 1
            return self._change_owner(before, after)
        if after.epoch != before.epoch:
            return f"expected epoch {before.epoch} for the same owner, found {after.epoch}"
        if after == before or "moving" in (after.state, before.state):
            return None
        return f"expected {before} or a move, found {after}"

    def _change_owner(self, before, after):
        if after.owner not in self.nodes:
            return f"expected an owner with a lease, found {after}"
        if before and after.epoch <= before.epoch:
            return f"expected an epoch above {before.epoch}, found {after}"
        if after.state == "taken":
            is_owned = before and before.owner in self.nodes
            return f"{after} has taken it, but {before} has a lease" if is_owned else None
        is_moved = after.state == "received" and before and before.target == after.owner
        return None if is_moved else f"expected a move to the new owner, found {before} and {after}"


def parse(value):
    """Returns the ownership of each slot in the value of a group."""
    slots = {}
    for line in value.splitlines():
        slot_range, owner, epoch, state, *target = line.split(" ")
        first, last = map(int, slot_range.split("-"))
        ownership = Ownership(owner, int(epoch), state, *target or [None])
        slots.update(dict.fromkeys(range(first, last + 1), ownership))
    return slots


def check(events):
    """Returns the history of a cluster, with a text for each change that breaks a rule."""
    history = History()
    for revision, changes in itertools.groupby(events, lambda event: event.revision):
        history.apply(revision, list(changes))
    return history
