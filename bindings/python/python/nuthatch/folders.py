"""Folders of chunk caches: the default one of a user, and those that are open in the process."""

import os
import warnings
import weakref
from pathlib import Path
from typing import Unpack

from nuthatch._native import Chunks
from nuthatch.errors import ArgumentError, Error
from nuthatch.options import ChunksOptions

__all__ = ["default_folder", "open_again", "open_folder", "open_if_possible"]

# Open folders by path.
_OPEN: weakref.WeakValueDictionary[str, Chunks] = weakref.WeakValueDictionary()
# Folders for which a warning was issued that they cannot be opened.
_WARNED: set[str] = set()
# The folder that was opened last stays open with its connections, since files are often opened one
# after the other.
_latest: Chunks | None = None


def default_folder() -> Path:
    """Returns the folder of this user's cache, which is also the default of the command line."""
    if folder := os.environ.get("NUTHATCH_CACHE"):
        return Path(folder)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "nuthatch" / "chunks"


def open_folder(
    folder: str | os.PathLike[str] | Chunks | None = None, **options: Unpack[ChunksOptions]
) -> Chunks:
    """Opens a folder once per process, so that all its readers share fetches.

    Args:
        folder: The folder, or an open one; by default that of this user's cache.
        **options: Settings of ``nuthatch.chunks.ChunksOptions``. For a folder that is open already,
            only ``limit`` is applied.

    Returns:
        The open folder.
    """
    global _latest
    if isinstance(folder, Chunks):
        return folder
    path = Path(folder) if folder else default_folder()
    path.mkdir(parents=True, exist_ok=True)
    path = path.resolve()
    chunks = _OPEN.get(str(path))
    if chunks is None:
        chunks = _OPEN.setdefault(str(path), Chunks(path, **options))
    elif (limit := options.get("limit")) is not None and limit != chunks.stat().limit:
        chunks.set_limit(limit)
    _latest = chunks
    return chunks


def open_if_possible(
    folder: str | os.PathLike[str] | Chunks | None = None, **options: Unpack[ChunksOptions]
) -> Chunks | None:
    """Opens a folder. If it cannot be opened, issues one ``RuntimeWarning`` per folder.

    Args:
        folder: The folder, or an open one; by default that of this user's cache.
        **options: Settings of ``nuthatch.chunks.ChunksOptions``.

    Returns:
        The open folder; ``None`` if it cannot be opened, and reads go to the origin.

    Raises:
        ArgumentError: An option is invalid.
    """
    try:
        return open_folder(folder, **options)
    except ArgumentError:
        raise
    except (Error, OSError) as error:
        if str(folder) not in _WARNED:
            _WARNED.add(str(folder))
            message = f"{error}; reads pass through to the origin"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        return None


def open_again(path: Path, options: ChunksOptions) -> Chunks:
    """Opens a folder that was pickled. Its limit is the current one, not that of the pickle."""
    return open_folder(path, **options)
