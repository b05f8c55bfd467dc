"""What objects are called in the cache: the same in all processes, and without secrets."""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

# Options of filesystems that say which server or archive it is. Keys and tokens are none of them.
_PLACES = (
    "account_host",
    "account_name",
    "base_url",
    "bucket",
    "endpoint",
    "endpoint_url",
    "fo",
    "host",
    "org",
    "port",
    "project",
    "ref",
    "repo",
    "repo_id",
    "revision",
    "sha",
    "share_name",
    "target_protocol",
    "url",
    "username",
)

# Parameters of Azure's signatures, and of older ones of S3, Google and CloudFront.
_AZURE = frozenset(
    (
        *("sig", "se", "sp", "sv", "sr", "st", "spr", "sip", "ss", "srt", "skoid", "sktid", "skt"),
        *("ske", "sks", "skv", "saoid", "suoid", "scid", "sdd", "ses", "si"),
    )
)
_OLDER = frozenset(
    ("signature", "expires", "policy", "key-pair-id", "awsaccesskeyid", "googleaccessid")
)
_PORTS = {"http": ":80", "https": ":443"}


def address_of(target: Any, path: str) -> str:
    """Tell where an object of a filesystem is."""
    url = str(target.unstrip_protocol(path))
    if url.startswith(("http://", "https://")):
        return plain_address(url)
    options = {**target.storage_options}
    options.update(options.pop("client_kwargs", None) or {})
    places = [f"{name}={_named(options[name])}" for name in _PLACES if options.get(name)]
    # Some protocols have a user and a password before the host.
    url = re.sub(r"^([a-z0-9+.-]+://)[^/@]*:[^/@]*@", r"\1", url)
    return " ".join([url, *places])


def _named(place: object) -> str:
    """Name a place; a file that is open is one that nobody else has."""
    if isinstance(place, str) and "://" in place:
        return plain_address(place)
    return str(place) if isinstance(place, str | int) else uuid.uuid4().hex


def plain_address(url: str) -> str:
    """Tell the address of a URL without user, password, fragment and signatures.

    What else is in its query stays as a hash, since a token may be there under any name.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    host = parts.netloc.rpartition("@")[2].lower().removesuffix(_PORTS.get(scheme, "/"))
    query = _kept_query(parts.query)
    return urlunsplit((scheme, host, parts.path or "/", query, ""))


def _kept_query(query: str) -> str:
    pairs = [pair for pair in query.split("&") if pair]
    names = [unquote(pair.partition("=")[0]).lower() for pair in pairs]

    def signs(name: str) -> bool:
        return (
            (name.startswith("x-amz-") and "x-amz-signature" in names)
            or (name.startswith("x-goog-") and "x-goog-signature" in names)
            or (name in _AZURE and "sig" in names and "sv" in names)
            or (
                name in _OLDER
                and "signature" in names
                and ("expires" in names or "policy" in names)
            )
        )

    kept = [pair for pair, name in zip(pairs, names, strict=True) if not signs(name)]
    if not kept:
        return ""
    return "sha256=" + hashlib.sha256("&".join(kept).encode()).hexdigest()[:32]
