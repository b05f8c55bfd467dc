"""Folders of chunk caches: one for each user, open once in a process."""

import os
import warnings
import weakref
from pathlib import Path
from typing import Unpack

from nuthatch._native import Chunks
from nuthatch.errors import ArgumentError, Error
from nuthatch.options import ChunksOptions

__all__ = ["default_folder", "open_again", "open_folder", "open_if_possible"]

# Folders that are open, by path.
_OPEN: weakref.WeakValueDictionary[str, Chunks] = weakref.WeakValueDictionary()
# Folders that cannot be opened.
_WARNED: set[str] = set()
# The one that was asked for last stays open, with its connections: files are opened in turn.
_latest: Chunks | None = None


def default_folder() -> Path:
    """Tell the folder of this user's cache, which the command has, too."""
    if folder := os.environ.get("NUTHATCH_CACHE"):
        return Path(folder)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "nuthatch" / "chunks"


def open_folder(
    folder: str | os.PathLike[str] | Chunks | None = None, **options: Unpack[ChunksOptions]
) -> Chunks:
    """Open a folder once for all who use it in this process, so that gaps are fetched once."""
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
    """Open a folder, or warn once for each that it cannot be: reads then pass through."""
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
    """Open a folder that was pickled, with the limits that it has by now."""
    return open_folder(path, **options)
