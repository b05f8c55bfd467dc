"""The shared test vectors of snapshots: their JSON form, and the cases that have passed."""

import base64
import json
import math
import os
import shutil
import struct
from pathlib import Path
from typing import Any

from conftest import ROOT

VECTORS = ROOT / "testdata/snapshot"
SHARDS = sorted(VECTORS.glob("v1/*.shard"))

_passed: set[str] = set()


def passed(name: str) -> None:
    """Notes that a case has passed, for the comparison between languages."""
    _passed.add(name)
    if path := os.environ.get("NUTHATCH_CASES"):
        lines = sorted(_passed, key=lambda line: line.encode())
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def table(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def good_files() -> list[str]:
    return sorted(f"v1/{path.stem}.nut" for path in VECTORS.glob("v1/*.json"))


def document(file: str) -> Any:
    return json.loads((VECTORS / file).with_suffix(".json").read_text(encoding="utf-8"))


def publish(file: Path, path: Path) -> None:
    """Renames a copy of a file over a path, with all shards beside it."""
    for shard in SHARDS:
        if not (path.parent / shard.name).exists():
            shutil.copy(shard, path.parent)
    copy = path.with_name("copy")
    shutil.copy(file, copy)
    copy.rename(path)


def damaged(case: Any, path: Path) -> None:
    """Writes the damaged file of a case."""
    data = bytearray((VECTORS / case["file"]).read_bytes())
    length = case.get("length", len(data))
    data = data[:length].ljust(length, b"\0")
    for patch in case.get("patch", []):
        patched = bytes.fromhex(patch["hex"])
        data[patch["at"] : patch["at"] + len(patched)] = patched
    path.write_bytes(data)


def key(form: Any) -> str | bytes:
    """Converts a key from its JSON form."""
    return base64.b64decode(form["$bytes"]) if isinstance(form, dict) else form


def _float(form: Any, bits: int) -> float:
    """Converts a number, or a text for one that JSON does not have."""
    if not isinstance(form, str):
        return float(form)
    if form.startswith("0x"):
        number = struct.unpack(
            "<d" if bits == 64 else "<f", int(form, 16).to_bytes(bits // 8, "little")
        )
        return float(number[0])
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[form]


def _bits_of_floats(form: Any, bits: int) -> bytes:
    """Returns the bytes of floats, in which NaNs with other bits differ."""
    code, integer = ("d", "Q") if bits == 64 else ("f", "I")
    known = {"NaN": 0x7FF8 << 48 if bits == 64 else 0x7FC0 << 16}
    stored = b""
    for each in form:
        if isinstance(each, str) and (each.startswith("0x") or each in known):
            stored += struct.pack(f"<{integer}", known.get(each) or int(each, 16))
        else:
            stored += struct.pack(f"<{code}", _float(each, bits))
    return stored


def comparable(form: Any) -> tuple[str, Any]:
    """Converts a value from its JSON form into a pair of its type and what is compared."""
    match form:
        case {"$bytes": text}:
            return "bytes", base64.b64decode(text)
        case {"$f32": list(numbers)}:
            return "list of f32", _bits_of_floats(numbers, 32)
        case {"$f64": list(numbers)}:
            return "list of f64", _bits_of_floats(numbers, 64)
        case {"$f64": number}:
            return "f64", _bits_of_floats([number], 64)
        case bool():
            return "bool", form
        case int():
            return "i64", form
        case float():
            return "f64", _bits_of_floats([form], 64)
        case str():
            return "string", form
        case []:
            return "empty list", None
        case [str(), *_]:
            return "list of string", form
        case [int(), *_]:
            return "list of i64", struct.pack(f"<{len(form)}q", *form)
        case [float(), *_]:
            return "list of f64", _bits_of_floats(form, 64)
    raise ValueError(form)


def compared(value: Any) -> tuple[str, Any]:
    """Converts a value of a snapshot into the same form."""
    match value:
        case bytes():
            return "bytes", value
        case str():
            return "string", value
        case bool():
            return "bool", value
        case int():
            return "i64", value
        case float():
            return "f64", struct.pack("<d", value)
        case []:
            return "empty list", None
        case list():
            return "list of string", value
    assert not value.flags.writeable or value.size == 0
    assert value.flags.aligned
    if value.size == 0:
        return "empty list", None
    name = {"int64": "i64", "float64": "f64", "float32": "f32"}[value.dtype.name]
    return f"list of {name}", value.tobytes()
