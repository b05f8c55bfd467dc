"""Addresses of objects in the cache: equal in all processes, and without secrets."""

from __future__ import annotations

import re
import uuid
from typing import Any
from urllib.parse import urlsplit

from nuthatch._native import _plain_address

# Options of filesystems that identify the server or archive. They must not include keys or tokens.
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


def address_of(target: Any, path: str) -> str:
    """Returns the address of an object of a filesystem.

    Args:
        target: The filesystem.
        path: Path of the object.
    """
    url = str(target.unstrip_protocol(path))
    if url.startswith(("http://", "https://")):
        return plain_address(url)
    options = {**target.storage_options}
    options.update(options.pop("client_kwargs", None) or {})
    places = [f"{name}={_named(options[name])}" for name in _PLACES if options.get(name)]
    # Some protocols have a user and a password before the host.
    url = re.sub(r"^([a-z0-9+.-]+://)[^/@]*:[^/@]*@", r"\1", url)
    return " ".join([url, *places])


def site_of(target: Any, path: str) -> str:
    """Returns the unit that is available or not as a whole: the host over HTTP, else the target."""
    url = urlsplit(str(target.unstrip_protocol(path)))
    return f"{url.scheme}://{url.netloc}" if url.scheme in ("http", "https") else ""


def _named(place: object) -> str:
    """Returns the text of an option. An open file has no name, so each gets a unique one."""
    if isinstance(place, str) and place.startswith(("http://", "https://")):
        return plain_address(place)
    return str(place) if isinstance(place, str | int) else uuid.uuid4().hex


def plain_address(url: str) -> str:
    """Returns the address of a URL without user, password and signatures.

    The rest of the query is replaced by a hash, since any parameter can contain a token.
    """
    return _plain_address(url)
