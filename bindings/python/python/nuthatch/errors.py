"""What can go wrong. Every error has a ``code``: a short name that stays between versions."""

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
    """Something went wrong in a store or a cache; ``code`` says what, for programs."""

    code: str
    """A short name, such as ``full``; the same in all languages."""

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class _SystemError(Error, OSError):
    """One that those who read files expect as an error of the system, with its number."""

    @property
    def strerror(self) -> str:  # type: ignore[override]
        """What went wrong, in words."""
        return str(self)


class AccessError(_SystemError, PermissionError):
    """Writing is not allowed, or nothing is: to a store or to a token."""

    errno = errno.EACCES


class ArgumentError(Error, ValueError):
    """What was asked for cannot be: a key is too long, a table is of another kind."""


class BusyError(Error):
    """Somebody else has the store open, and must not."""


class ChangedError(_SystemError):
    """A remote object changed while it was read: open it again, which reads the new one."""

    errno = errno.ESTALE


class ClosedError(Error):
    """The store was closed, or the scan, transaction or writer was."""


class ConditionError(Error):
    """A condition did not hold, so nothing was written."""

    write: int | None
    """Which write of the batch or transaction it was, counted from zero."""

    def __init__(self, message: str, code: str = "condition-unmet", write: int | None = None):
        super().__init__(message, code)
        self.args = (message, code, write)
        self.write = write


class ConflictError(Error):
    """A chunk is there with other bytes, or bytes do not have the hash that they are named by."""


class DamagedError(Error):
    """The files are not those of a store, or damaged, or a write to the disk failed."""


class FullError(Error):
    """The store, a queue or the memory of a server holds all that it may."""


class NotFoundError(_SystemError, FileNotFoundError):
    """There is nothing at a URL."""

    errno = errno.ENOENT


class UnavailableError(_SystemError, ConnectionError):
    """A server could not be reached, or ended the call: the same may succeed soon."""

    errno = errno.ENOTCONN


class WatchError(Error):
    """Changes are not kept, or no longer, or not yet: scan, then watch from there."""


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
    """Make the error for a code."""
    kind = _BY_CODE.get(code, Error)
    if issubclass(kind, ConditionError):
        return kind(message, code, write)
    return kind(message, code)
