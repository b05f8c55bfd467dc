#!/usr/bin/env python3
"""Prints entries of a snapshot as JSON lines.

    dump.py FILE              verifies the file and prints its entries as JSON lines
    dump.py FILE KEY...       prints the values of these keys; exit status 1 if a key is missing
"""

import base64
import json
import math
import struct
import sys

import reader
import sets


def json_of(value):
    """Returns a `Value` in the JSON form of `nuthatch dump`."""
    if value.type == reader.BYTES:
        return {"$bytes": base64.b64encode(value.data).decode()}
    if value.type == reader.F64:
        number = json_of_float(value.data, "d")
        return {"$f64": number} if isinstance(number, str) else number
    if value.type == reader.F32S:
        return {"$f32": [json_of_float(number, "f") for number in value.data]}
    if value.type == reader.F64S:
        numbers = [json_of_float(number, "d") for number in value.data]
        return {"$f64": numbers} if any(isinstance(n, str) for n in numbers) else numbers
    return value.data


def json_of_float(number, element):
    """Returns a finite number as it is, and any other as a string.

    Args:
        number: The number.
        element: The format of its bits: "d" or "f".
    """
    if math.isfinite(number):
        return number
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    bits = struct.pack(">" + element, number)
    return "NaN" if bits == struct.pack(">" + element, math.nan) else "0x" + bits.hex()


def json_of_key(key):
    """Returns a key in the JSON form of `nuthatch dump`."""
    try:
        return key.decode("utf-8")
    except UnicodeDecodeError:
        return {"$bytes": base64.b64encode(key).decode()}


def main(path, *keys):
    """Prints the values of keys, or verifies and prints all entries. Returns the exit status."""
    snapshot, status = sets.open_snapshot(path), 0
    if not keys:
        snapshot.verify()
    found = ((key, snapshot.get(key)) for key in map(str.encode, keys))
    for key, value in found if keys else snapshot:
        if value is None:
            print(f"{path}: no key {key}", file=sys.stderr)
            status = 1
            continue
        row = {"key": json_of_key(key), "type": reader.TYPES[value.type], "value": json_of(value)}
        print(json.dumps(row, ensure_ascii=False))
    return status


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except reader.SnapshotError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
