"""Which version of an object it is, from what its filesystem says of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from fsspec import AbstractFileSystem

from nuthatch._native import _stale_if_error

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
# What filesystems call the header Cache-Control.
_CACHE_CONTROL = ("Cache-Control", "CacheControl", "cacheControl", "cache_control")
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
    stale_if_error: int | None = field(default=None, compare=False)
    """For how many seconds the target allows it to be read while the target is unavailable."""
    is_stale: bool = field(default=False, compare=False)
    """Whether it was recorded earlier, and the target did not confirm it now."""

    def described(self) -> str:
        """Tell it, for errors."""
        return f"{self.stamp or 'without validator'}, {self.size} bytes"


def version_of(target: Any, path: str, info: dict[str, Any]) -> Version | None:
    """Tell which version an object has; ``None`` if it is none of a known length."""
    size = info.get("size")
    if info.get("type") != "file" or size is None:
        return None
    found = _stamped(target, path, int(size), info)
    cache_control = next((info[name] for name in _CACHE_CONTROL if info.get(name)), None)
    return replace(found, stale_if_error=_allowed_stale(cache_control))


def _stamped(target: Any, path: str, size: int, info: dict[str, Any]) -> Version:
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


def _allowed_stale(cache_control: object) -> int | None:
    return _stale_if_error(cache_control) if isinstance(cache_control, str) else None


def is_http(target: Any) -> bool:
    """Tell whether a filesystem is fsspec's for HTTP."""
    return hasattr(target, "encode_url") and hasattr(target, "set_session")


def http_stamp(etag: str | None, modified: str | None) -> str | None:
    """Take a strong tag; a weak one together with the time, or what there is of them."""
    if etag and not _is_weak(etag):
        return etag
    return " ".join(filter(None, (etag, modified))) or None


def http_version(headers: Mapping[str, str]) -> Version | None:
    """Return the version that the head of an answer describes; ``None`` without a length."""
    size = headers.get("Content-Length", "")
    # The length of an encoded answer is not that of the object.
    if headers.get("Content-Encoding", "identity") not in ("", "identity") or not size.isdecimal():
        return None
    etag, modified = headers.get("ETag"), headers.get("Last-Modified")
    stamp = http_stamp(etag, modified)
    # A weak tag counts only together with a time, and a time if it lies back.
    is_strong = etag and not _is_weak(etag)
    is_settled = is_strong or (modified and _lies_back(modified))
    allowed = _allowed_stale(headers.get("Cache-Control"))
    return Version(int(size), stamp, stamp if is_settled else None, allowed)


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
