"""Which version of an object it is, from what its filesystem says of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from fsspec import AbstractFileSystem

# What filesystems call something that differs whenever bytes do, the best of it first.
_TAGS = (
    "ETag",
    "etag",
    "e_tag",
    "generation",
    "blob_id",
    "oid",
    "sha256",
    "sha",
    "hash",
    "md5Hash",
    "md5",
    "Content-MD5",
    "content_md5",
    "Digest",
    "checksum",
    "crc32c",
    "CRC",
    "VersionId",
    "version_id",
    "version_aware",
)
# Times, and what else tells files apart that have none of these.
_TIMES = (
    "mtime",
    "mtimeNs",
    "LastModified",
    "last_modified",
    "Last-Modified",
    "modified",
    "modify",
    "updated",
    "modificationTime",
    "ino",
    "created",
)
# How long a time must lie back, in seconds: one of whole seconds is the same for what is written
# twice within one, and one with a fraction for what is written twice within a tick of the clock.
_SETTLED = 2.0
_SETTLED_FINE = 0.05


@dataclass(frozen=True)
class Version:
    """One version of an object. Two are the same if their sizes and stamps are."""

    size: int
    stamp: str | None
    """What the target says that differs between versions; over HTTP, every answer has it."""
    validator: str | None = field(compare=False)
    """The stamp, if it tells this version from any later one; otherwise ``None``."""

    def described(self) -> str:
        """Tell it, for errors."""
        return f"{self.stamp or 'without validator'}, {self.size} bytes"


def version_of(target: Any, path: str, info: dict[str, Any]) -> Version | None:
    """Tell which version an object has; ``None`` if it is none of a known length."""
    size = info.get("size")
    if info.get("type") != "file" or size is None:
        return None
    size = int(size)
    if is_http(target):
        return _http_version(size, info.get("ETag"), info.get("Last-Modified"))
    for name in _TAGS:
        if info.get(name):
            return _tagged(size, f"{name}={info[name]}")
    if type(target).ukey is not AbstractFileSystem.ukey:
        return _tagged(size, f"ukey={target.ukey(path)}")
    times = {name: info[name] for name in _TIMES if info.get(name)}
    if type(target).modified is not AbstractFileSystem.modified and not _has_mtime(times):
        times["modified"] = target.modified(path)
    if not _has_mtime(times):
        return Version(size, None, None)
    stamp = " ".join(f"{name}={value}" for name, value in sorted(times.items()))
    times.pop("ino", None)
    return Version(size, stamp, stamp if all(map(_is_settled, times.values())) else None)


def is_http(target: Any) -> bool:
    """Tell whether a filesystem is fsspec's for HTTP."""
    return hasattr(target, "encode_url") and hasattr(target, "set_session")


def http_stamp(etag: str | None, modified: str | None) -> str | None:
    """Take a strong tag; a weak one together with the time, or what there is of them."""
    if etag and not _is_weak(etag):
        return etag
    return " ".join(filter(None, (etag, modified))) or None


def _http_version(size: int, etag: str | None, modified: str | None) -> Version:
    stamp = http_stamp(etag, modified)
    if etag and not _is_weak(etag):
        return _tagged(size, etag)
    # A weak tag counts only together with a time, and a time if it lies back.
    return Version(size, stamp, stamp if modified and _lies_back(modified) else None)


def _is_weak(etag: str) -> bool:
    return etag.lower().startswith("w/")


def _tagged(size: int, stamp: str) -> Version:
    return Version(size, stamp, stamp)


def _has_mtime(times: dict[str, Any]) -> bool:
    return any(name not in ("ino", "created") for name in times)


def _lies_back(modified: str) -> bool:
    try:
        return time.time() - parsedate_to_datetime(modified).timestamp() >= _SETTLED
    except ValueError:
        return False


def _is_settled(value: object) -> bool:
    """Tell whether what is written from now on has another time; so it is if none can be read."""
    at = _seconds(value)
    if at is None:
        return True
    return abs(time.time() - at) >= (_SETTLED if at == int(at) else _SETTLED_FINE)


def _seconds(value: object) -> float | None:
    """Read a time: a number of seconds or of parts of them, or as it is written."""
    if isinstance(value, str):
        try:
            # As FTP has it; anything else is left to ISO 8601.
            ftp = value.isdigit() and len(value) == 14
            value = datetime.fromisoformat(f"{value[:8]}T{value[8:]}Z" if ftp else value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value.timestamp()
    if not isinstance(value, int | float):
        return None
    while value > 1e11:
        value /= 1000
    return value
