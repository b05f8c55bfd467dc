"""Versions of objects, from the information that their filesystem returns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from fsspec import AbstractFileSystem

from nuthatch._native import _stale_if_error

# Names that filesystems give to validators, the most reliable first.
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
# Names of times, and of other properties that distinguish versions without a validator.
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
# Names that filesystems give to the header Cache-Control.
_CACHE_CONTROL = ("Cache-Control", "CacheControl", "cacheControl", "cache_control")
# Minimum age in seconds of a time of modification that identifies a version. Two writes within the
# resolution of the time have the same one: a second for times in whole seconds, a clock tick for
# times with a fraction.
_SETTLED = 2.0
_SETTLED_FINE = 0.05


@dataclass(frozen=True)
class Version:
    """A version of an object. Versions are equal if their sizes and stamps are."""

    size: int
    stamp: str | None
    """Tags or times that differ between versions. Over HTTP, each response contains them."""
    validator: str | None = field(compare=False)
    """The stamp if it differs from that of any later version; otherwise ``None``."""
    stale_if_error: int | None = field(default=None, compare=False)
    """Seconds for which the target allows reads of this version while it is unavailable."""
    is_stale: bool = field(default=False, compare=False)
    """Whether the version comes from a record that the target did not confirm."""

    def described(self) -> str:
        """Returns a description for error messages."""
        return f"{self.stamp or 'without validator'}, {self.size} bytes"


def version_of(target: Any, path: str, info: dict[str, Any]) -> Version | None:
    """Returns the version of an object; ``None`` if it is no file or its length is unknown.

    Args:
        target: The filesystem.
        path: Path of the object.
        info: The information that the filesystem returned.
    """
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
    """Returns whether a filesystem is that of fsspec for HTTP."""
    return hasattr(target, "encode_url") and hasattr(target, "set_session")


def http_stamp(etag: str | None, modified: str | None) -> str | None:
    """Returns a strong tag; otherwise the weak tag and the time of modification, if any."""
    if etag and not _is_weak(etag):
        return etag
    return " ".join(filter(None, (etag, modified))) or None


def http_version(headers: Mapping[str, str]) -> Version | None:
    """Returns the version that the head of a response describes; ``None`` without a length."""
    size = headers.get("Content-Length", "")
    # The length of an encoded response is not that of the object.
    if headers.get("Content-Encoding", "identity") not in ("", "identity") or not size.isdecimal():
        return None
    etag, modified = headers.get("ETag"), headers.get("Last-Modified")
    stamp = http_stamp(etag, modified)
    # A weak tag is a validator only together with a time of modification that is old enough.
    is_strong = etag and not _is_weak(etag)
    is_settled = is_strong or (modified and _is_old_enough(modified))
    allowed = _allowed_stale(headers.get("Cache-Control"))
    return Version(int(size), stamp, stamp if is_settled else None, allowed)


def _is_weak(etag: str) -> bool:
    return etag.lower().startswith("w/")


def _tagged(size: int, stamp: str) -> Version:
    return Version(size, stamp, stamp)


def _has_mtime(times: dict[str, Any]) -> bool:
    return any(name not in ("ino", "created") for name in times)


def _is_old_enough(modified: str) -> bool:
    try:
        return time.time() - parsedate_to_datetime(modified).timestamp() >= _SETTLED
    except ValueError:
        return False


def _is_settled(value: object) -> bool:
    """Returns whether later writes get another time. True also for a value that is no time."""
    at = _seconds(value)
    if at is None:
        return True
    return abs(time.time() - at) >= (_SETTLED if at == int(at) else _SETTLED_FINE)


def _seconds(value: object) -> float | None:
    """Converts a time into seconds since 1970: a number in any unit, a ``datetime`` or text."""
    if isinstance(value, str):
        try:
            # 14 digits are the format of FTP. Other text must be ISO 8601.
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
