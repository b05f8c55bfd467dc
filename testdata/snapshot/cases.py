#!/usr/bin/env python3
"""Compares the cases that readers have passed with all cases of this folder.

Without arguments, prints the names of all cases, sorted. Otherwise each argument is a file with the
names of the cases that the tests of one reader have passed; exits with status 1 if one of them
lacks a case or has an unknown one. README.md in this folder says which names these are.
"""

import collections
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
SHOWN = 5  # Number of names that are printed for each file.


def all_cases():
    """Returns the names of all cases, sorted."""
    names = [f"v1/{path.name}" for path in HERE.glob("v1/*.nut")]
    names += [f"{case['file']}: {case['name']}" for case in table("bad/cases")]
    for rows in ("hashes", "typed", "watch"):
        names += [case["name"] for case in table(rows)]
    names.append(table("large")["name"])
    return sorted(names)


def table(name):
    """Returns the contents of a table of this folder."""
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def compare(path):
    """Compares the names in a file with all cases, and prints what differs.

    Returns whether they are the same.
    """
    expected = collections.Counter(all_cases())
    found = collections.Counter(pathlib.Path(path).read_text(encoding="utf-8").splitlines())
    for what, names in (("not passed", expected - found), ("unknown", found - expected)):
        if names:
            shown = ", ".join(sorted(names)[:SHOWN])
            print(f"{path}: {names.total()} cases {what}, such as {shown}")
    return expected == found


def main(paths):
    """Prints all cases, or compares files with them. Returns the exit status."""
    if not paths:
        print("\n".join(all_cases()))
        return 0
    return 0 if all([compare(path) for path in paths]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
