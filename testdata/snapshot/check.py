#!/usr/bin/env python3
"""Runs reader.py over the good and the bad files here, and over those given as arguments.

An example of how the tests of a reader in another language can go about it; README.md beside this
file describes the tables. Called by `check`.
"""

import base64
import json
import pathlib
import resource
import signal
import sys
import tempfile

import reader

HERE = pathlib.Path(__file__).parent
SECONDS, MEMORY = 50, 1 << 30  # to end in, and to make do with


def expect(what, expected, found):
    if repr(expected) != repr(found):  # which tells 0.0 from -0.0, and 1 from 1.0
        raise AssertionError(f"{what}: expected {expected!r:.200}, found {found!r:.200}")


def key_of(key):
    return key.encode() if isinstance(key, str) else base64.b64decode(key["$bytes"])


def row_of(key, value):
    return {"key": reader.json_of_key(key), "type": reader.TYPES[value.type],
            "value": reader.json_of(value)}


def stats_of(snapshot):
    lengths = {name: length for name, (_, length) in snapshot.sections.items()}
    by_type = enumerate(snapshot.entries_by_type)
    return {
        "file_bytes": snapshot.file_len,
        "entries": snapshot.entries,
        "key_bytes": snapshot.key_bytes,
        "value_bytes": snapshot.value_bytes,
        "stored_value_bytes": snapshot.stored_value_bytes,
        "shared_entries": snapshot.shared_entries,
        "compressed_entries": snapshot.compressed_entries,
        "dictionary_bytes": lengths["dictionary"],
        "index_bytes": lengths["index"],
        "data_bytes": lengths["data"],
        "partitions": 1 << snapshot.partition_bits,
        "lines": snapshot.lines,
        "max_probe": snapshot.max_probe,
        "seed": snapshot.seed,
        "entries_by_type": {reader.TYPES[code]: count for code, count in by_type if count},
    }


def check_good(snapshot, expected):
    """That a file has the entries, in this order, and that lookups find them and no others."""
    expect("stats", expected["stats"], stats_of(snapshot))
    snapshot.verify()
    check_entries(snapshot, expected)


def check_entries(snapshot, expected):
    entries = expected["entries"]
    expect("entries", len(entries), sum(1 for _ in snapshot))
    for entry, (key, value) in zip(entries, snapshot):
        expect("entry", entry, row_of(key, value))
        expect("lookup", entry, row_of(key, snapshot.get(key)))
    for key in expected["absent"]:
        expect(f"lookup of {key}", None, snapshot.get(key_of(key)))


def check_alone(snapshot):
    """That a file of which no more is known is right, and that lookups find what iteration does."""
    snapshot.verify()
    for key, value in snapshot:
        expect(f"lookup of {key}", repr(value), repr(snapshot.get(key)))


def check_bad(path, case, expected):
    """That a file gives the case's error, and that lookups and iteration come to an end."""
    found, snapshot = error_of(lambda: reader.Snapshot.open(path))
    expect("open", case.get("open"), found)
    if "open" in case:
        return
    found, _ = error_of(snapshot.verify)
    expect("verify", case.get("verify"), found)
    if "verify" not in case:
        check_entries(snapshot, expected)
        return
    keys = [entry["key"] for entry in expected["entries"]] + expected["absent"]
    for key in keys:
        answer_of(snapshot, key)
    iteration, _ = error_of(lambda: list(snapshot))
    if "get" in case:
        answer = case["get"]["answer"]
        expect("lookup", answer, answer_of(snapshot, case["get"]["key"]))
        if answer == "corrupt":
            expect("iteration", answer, iteration and iteration["code"])


def error_of(act):
    """The error of an act, as the tables have it, and its result."""
    try:
        return None, act()
    except reader.SnapshotError as error:
        return {"code": error.code, "offset": error.offset}, None


def answer_of(snapshot, key):
    error, value = error_of(lambda: snapshot.get(key_of(key)))
    if error:
        expect(f"error of a lookup of {key}", "corrupt", error["code"])
    return "corrupt" if error else "absent" if value is None else "value"


def damaged(case):
    """The bytes of a case: its file, cut or made longer with zeros, and patched."""
    data = bytearray((HERE / case["file"]).read_bytes())
    length = case.get("length", len(data))
    data = data[:length].ljust(length, b"\0")
    for patch in case.get("patch", ()):
        changed = bytes.fromhex(patch["hex"])
        data[patch["at"]:patch["at"] + len(changed)] = changed
    return data


def checks(arguments):
    """Pairs of name and check."""
    documents = {}
    for path in sorted(HERE.glob("v*/*.json")):
        name = f"{path.parent.name}/{path.stem}.nut"
        documents[name] = json.loads(path.read_text(encoding="utf-8"))
        yield name, lambda: check_good(reader.Snapshot.open(HERE / name), documents[name])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.nut"
        for case in json.loads((HERE / "bad/cases.json").read_text(encoding="utf-8")):
            path.write_bytes(damaged(case))
            document = documents[case.get("of", case["file"])]
            yield f"{case['file']}: {case['name']}", lambda: check_bad(path, case, document)
    for path in arguments:
        yield path, lambda: check_alone(reader.Snapshot.open(path))


def main(arguments):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(SECONDS)
    passed = failed = 0
    for name, check in checks(arguments):
        try:
            check()
            passed += 1
        except Exception as error:  # whatever a reader should not have raised
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
