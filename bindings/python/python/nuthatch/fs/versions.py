"""Which version of an object it is, from what its filesystem says of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
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
# A time in whole seconds is the same for what is written twice within one.
_SETTLED = 2.0


@dataclass(frozen=True)
class Version:
    """One version of an object."""

    size: int
    validator: str | None
    """What tells it from any other; ``None`` if nothing does."""
    etag: str | None = None
    """What every answer of an HTTP server has for it."""
    modified: str | None = None
    """What every answer has that has no tag."""

    def described(self) -> str:
        """Tell it, for errors."""
        return f"{self.validator or 'without validator'}, {self.size} bytes"


def version_of(target: Any, path: str, info: dict[str, Any]) -> Version | None:
    """Tell which version an object has; ``None`` if it is none of a known length."""
    size = info.get("size")
    if info.get("type") != "file" or size is None:
        return None
    size = int(size)
    if is_http(target):
        etag, modified = info.get("ETag"), info.get("Last-Modified")
        return Version(size, _http_validator(etag, modified), etag, modified)
    for name in _TAGS:
        if info.get(name):
            return Version(size, f"{name}={info[name]}")
    if type(target).ukey is not AbstractFileSystem.ukey:
        return Version(size, f"ukey={target.ukey(path)}")
    times = {name: info[name] for name in _TIMES if info.get(name)}
    if type(target).modified is not AbstractFileSystem.modified and not _has_mtime(times):
        times["modified"] = target.modified(path)
    if not _has_mtime(times):
        return Version(size, None)
    return Version(size, " ".join(f"{name}={value}" for name, value in sorted(times.items())))


def is_http(target: Any) -> bool:
    """Tell whether a filesystem is fsspec's for HTTP."""
    return hasattr(target, "encode_url") and hasattr(target, "set_session")


def _has_mtime(times: dict[str, Any]) -> bool:
    return any(name not in ("ino", "created") for name in times)


def _http_validator(etag: str | None, modified: str | None) -> str | None:
    """Take a strong tag; a weak one only together with a time, and a time if it lies back."""
    if etag and not etag.lower().startswith("w/"):
        return etag
    if not modified or not _is_settled(modified):
        return None
    return f"{etag} {modified}" if etag else modified


def _is_settled(modified: str) -> bool:
    try:
        return time.time() - parsedate_to_datetime(modified).timestamp() >= _SETTLED
    except ValueError:
        return False
