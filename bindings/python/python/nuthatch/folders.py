"""Folders of chunk caches: one for each user, open once in a process."""

import os
import weakref
from pathlib import Path
from typing import Unpack

from nuthatch._native import Chunks
from nuthatch.options import ChunksOptions

__all__ = ["default_folder", "open_again", "open_folder"]

# Folders that are open, by path.
_OPEN: weakref.WeakValueDictionary[str, Chunks] = weakref.WeakValueDictionary()
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


def open_again(path: Path, options: ChunksOptions) -> Chunks:
    """Open a folder that was pickled, with the limits that it has by now."""
    return open_folder(path, **options)
