"""Exceptions. Each has a ``code``: a short name that does not change between versions."""

import errno

__all__ = [
    "AccessError",
    "ArgumentError",
    "BusyError",
    "ChangedError",
    "ClosedError",
    "ConditionError",
    "ConflictError",
    "DamagedError",
    "Error",
    "FullError",
    "NotFoundError",
    "UnavailableError",
    "WatchError",
]


class Error(Exception):
    """An error of a store or a cache. Programs distinguish errors by ``code``."""

    code: str
    """A short name, such as ``full``. It is the same in all languages."""

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class _SystemError(Error, OSError):
    """An error that callers which read files expect as an ``OSError`` with an ``errno``."""

    @property
    def strerror(self) -> str:  # type: ignore[override]
        """Returns the message."""
        return str(self)


class AccessError(_SystemError, PermissionError):
    """The store, the origin or a token does not permit the operation."""

    errno = errno.EACCES


class ArgumentError(Error, ValueError):
    """An argument is invalid: for example, a key is too long or a table is of the other kind."""


class BusyError(Error):
    """Another process or another ``Store`` has the store open, which excludes the operation."""


class ChangedError(_SystemError):
    """A remote object changed while it was read. Opening it again reads the new version."""

    errno = errno.ESTALE


class ClosedError(Error):
    """The store, scan, transaction or writer is closed."""


class ConditionError(Error):
    """A condition was not met, and nothing was written."""

    write: int | None
    """Index of the condition in its batch or transaction, from 0."""

    def __init__(self, message: str, code: str = "condition-unmet", write: int | None = None):
        super().__init__(message, code)
        self.args = (message, code, write)
        self.write = write


class ConflictError(Error):
    """The cache has a chunk with other bytes, or the hash of bytes differs from their name."""


class DamagedError(Error):
    """The files are damaged or not those of a store, or a write to the disk failed."""


class FullError(Error):
    """The store, a queue or the memory of a server has reached its limit."""


class NotFoundError(_SystemError, FileNotFoundError):
    """The object at a URL does not exist."""

    errno = errno.ENOENT


class UnavailableError(_SystemError, ConnectionError):
    """A server or an origin cannot be reached, or ended the call; a later call may succeed.

    Also: ``offline`` is set, and the cache does not have the bytes or may not use their version.
    """

    errno = errno.ENOTCONN


class WatchError(Error):
    """A watch needs changes that are not kept. Scan the table, then watch from there."""


_BY_CODE: dict[str, type[Error]] = {
    **dict.fromkeys(("denied", "forbidden", "read-only", "unauthenticated"), AccessError),
    **dict.fromkeys(
        ("argument", "length", "no-table", "options", "table", "too-long", "unordered"),
        ArgumentError,
    ),
    **dict.fromkeys(("address", "buffer", "key", "offsets", "range", "too-large"), ArgumentError),
    **dict.fromkeys(("already-open", "in-use", "other-locks"), BusyError),
    "changed": ChangedError,
    "closed": ClosedError,
    "not-found": NotFoundError,
    "condition-unmet": ConditionError,
    **dict.fromkeys(("conflict", "content"), ConflictError),
    **dict.fromkeys(("answer", "broken", "corrupt", "decode", "not-a-store"), DamagedError),
    **dict.fromkeys(
        ("full", "memory", "queue-full", "readers-full", "transaction-full"), FullError
    ),
    **dict.fromkeys(
        ("deadline", "draining", "expired", "offline", "transport", "unreachable"),
        UnavailableError,
    ),
    **dict.fromkeys(("ahead", "fell-behind", "no-changes-kept"), WatchError),
    **dict.fromkeys(
        ("cache", "folder", "group", "internal", "io", "lmdb", "setup", "status"), Error
    ),
}


def from_code(code: str, message: str, write: int | None) -> Error:
    """Creates the exception for a code.

    Args:
        code: The code; an unknown one makes an ``Error``.
        message: The message.
        write: Index of the condition that was not met, for ``condition-unmet``.
    """
    kind = _BY_CODE.get(code, Error)
    if issubclass(kind, ConditionError):
        return kind(message, code, write)
    return kind(message, code)
