#!/usr/bin/env python3
"""Tests reader.py with the good and bad files of this folder, and with files in its arguments.

It is an example for the tests of a reader in another language. README.md in this folder describes
the tables. The script `check` runs it.
"""

import base64
import collections
import json
import pathlib
import resource
import shutil
import signal
import sys
import tempfile

import dump
import reader
import sets

HERE = pathlib.Path(__file__).parent
MAX_SECONDS, MAX_MEMORY = 50, 1 << 30  # Limits of the process: seconds and bytes.
LARGE_MEMORY = 8 << 30  # Limit while the file beyond 4 GiB is mapped.


def expect(what, expected, found):
    """Raises an `AssertionError` unless both values are equal.

    Compares representations, so that 0.0 differs from -0.0, and 1 from 1.0.
    """
    if repr(expected) != repr(found):
        raise AssertionError(f"{what}: expected {expected!r:.200}, found {found!r:.200}")


def key_of(key):
    """Returns the bytes of a key in JSON form."""
    return key.encode() if isinstance(key, str) else base64.b64decode(key["$bytes"])


def row_of(key, value):
    """Returns an entry in the form of the JSON documents."""
    return {"key": dump.json_of_key(key), "type": reader.TYPES[value.type],
            "value": dump.json_of(value)}


def stats_of(snapshot):
    """Returns the statistics with the names of `nuthatch info --json`; sums for a set."""
    if isinstance(snapshot, sets.SnapshotSet):
        stats = [stats_of(shard) for shard in snapshot.shards]
        names = [name for name in stats[0] if name != "entries_by_type"]
        sums = {name: sum(one[name] for one in stats) for name in names}
        types = collections.Counter()
        for one in stats:
            types.update(one["entries_by_type"])
        in_order = {name: types[name] for name in reader.TYPES.values() if types[name]}
        probe = max(one["max_probe"] for one in stats)
        return {**sums, "max_probe": probe, "seed": snapshot.seed, "entries_by_type": in_order}
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
    """Checks that a file is valid and has the expected statistics and entries."""
    expect("stats", expected["stats"], stats_of(snapshot))
    metadata = {name: json_of_bytes(value) for name, value in snapshot.metadata().items()}
    expect("metadata", expected.get("metadata", {}), metadata)
    expect("shards", expected.get("shards", 0), len(getattr(snapshot, "shards", ())))
    snapshot.verify()
    check_entries(snapshot, expected)


def json_of_bytes(value):
    """Returns a value of the metadata in JSON form."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"$bytes": base64.b64encode(value).decode()}


def check_entries(snapshot, expected):
    """Checks that iteration and lookups return the expected entries, and no absent keys."""
    entries = expected["entries"]
    expect("entries", len(entries), sum(1 for _ in snapshot))
    for entry, (key, value) in zip(entries, snapshot):
        expect("entry", entry, row_of(key, value))
        expect("lookup", entry, row_of(key, snapshot.get(key)))
    for key in expected["absent"]:
        expect(f"lookup of {key}", None, snapshot.get(key_of(key)))


def check_unknown(snapshot):
    """Checks that a file is valid, and that lookups and iteration return the same values."""
    snapshot.verify()
    for key, value in snapshot:
        expect(f"lookup of {key}", repr(value), repr(snapshot.get(key)))


def check_bad(path, case, expected):
    """Checks that a file has the error of the case, and that lookups and iteration end.

    Args:
        path: The path of the damaged file.
        case: The case, from cases.json.
        expected: The JSON document of the good file.
    """
    found, snapshot = error_of(lambda: sets.open_snapshot(path))
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
        lookup_result(snapshot, key)
    iteration, _ = error_of(lambda: list(snapshot))
    if "get" in case:
        result = case["get"]["answer"]
        expect("lookup", result, lookup_result(snapshot, case["get"]["key"]))
        if result == "corrupt":
            expect("iteration", result, iteration and iteration["code"])


def error_of(operation):
    """Calls a function. Returns a pair of its error, in the form of the cases, and its result."""
    try:
        return None, operation()
    except reader.SnapshotError as error:
        return {"code": error.code, "offset": error.offset}, None


def lookup_result(snapshot, key):
    """Returns the result of a lookup: "corrupt", "absent" or "value"."""
    error, value = error_of(lambda: snapshot.get(key_of(key)))
    if error:
        expect(f"error of a lookup of {key}", "corrupt", error["code"])
    return "corrupt" if error else "absent" if value is None else "value"


def check_hash(case):
    """Checks the hash of a key with a seed."""
    found = reader.hash_of(key_of(case["key"]), int(case["seed"], 16))
    expect("hash", case["hash"], f"{found:016x}")


def check_typed(case):
    """Checks a lookup that requests a type."""
    value = sets.open_snapshot(HERE / case["file"]).get(key_of(case["key"]))
    if value is None:
        expect("lookup", {"absent": True}, {"absent": case.get("absent")})
        return
    found = reader.TYPES[value.type]
    any_list = found == "empty list" and case["as"].startswith("list")
    if found == case["as"] or any_list:
        expect("lookup", case.get("value"), dump.json_of(value))
    else:
        expect("type", case.get("found"), found)


def check_large(case, folder):
    """Creates the file beyond 4 GiB, and checks its entries."""
    path = pathlib.Path(folder) / "large.nut"
    with path.open("wb") as file:
        file.truncate(case["length"])
        for patch in case["patch"]:
            file.seek(patch["at"])
            file.write(bytes.fromhex(patch["hex"]))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (LARGE_MEMORY, hard))
    check_entries(sets.open_snapshot(path), case)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, hard))


def table(name):
    """Returns the contents of a table of this folder."""
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def damaged(case):
    """Returns the bytes of a case: its file, truncated or extended with zeros, and patched."""
    data = bytearray((HERE / case["file"]).read_bytes())
    length = case.get("length", len(data))
    data = data[:length].ljust(length, b"\0")
    for patch in case.get("patch", ()):
        changed = bytes.fromhex(patch["hex"])
        data[patch["at"]:patch["at"] + len(changed)] = changed
    return data


def checks(arguments):
    """Yields pairs of the name of a check and a function that runs it.

    Args:
        arguments: Paths of files besides those of this folder.
    """
    documents = {}
    for path in sorted(HERE.glob("v*/*.json")):
        name = f"{path.parent.name}/{path.stem}.nut"
        documents[name] = json.loads(path.read_text(encoding="utf-8"))
        yield name, lambda: check_good(sets.open_snapshot(HERE / name), documents[name])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.nut"
        for shard in HERE.glob("v*/*.shard"):
            shutil.copy(shard, folder)
        for case in table("bad/cases"):
            path.write_bytes(damaged(case))
            document = documents[case.get("of", case["file"])]
            yield f"{case['file']}: {case['name']}", lambda: check_bad(path, case, document)
        yield "large", lambda: check_large(table("large"), folder)
    for case in table("hashes"):
        yield case["name"], lambda: check_hash(case)
    for case in table("typed"):
        yield case["name"], lambda: check_typed(case)
    for path in arguments:
        yield path, lambda: check_unknown(sets.open_snapshot(path))


def main(arguments):
    """Runs all checks and prints the failed ones. Returns whether one failed."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, LARGE_MEMORY))
    signal.alarm(MAX_SECONDS)
    passed = failed = 0
    for name, check in checks(arguments):
        try:
            check()
            passed += 1
        except Exception as error:  # Also errors that a reader must not raise.
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
