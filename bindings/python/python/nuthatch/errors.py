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
    "GateError",
    "NotFoundError",
    "SignatureError",
    "UnavailableError",
    "UnsupportedError",
    "WatchError",
    "WrongTypeError",
]


class Error(Exception):
    """An error of a snapshot, a store or a cache. Programs distinguish errors by ``code``."""

    code: str
    """A short name, such as ``full``. It is the same in all languages."""
    path: str | None = None
    """Path of the file, for errors of snapshots."""
    offset: int | None = None
    """Offset in the file in bytes, if a snapshot is damaged."""
    expected: str | None = None
    """What was expected there."""
    found: str | None = None
    """What was found there."""

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
    """The file, the store, the origin or a token does not permit the operation."""

    errno = errno.EACCES


class ArgumentError(Error, ValueError):
    """An argument is invalid: a key is too long, a table of the other kind, a key has two rows."""


class BusyError(Error):
    """Another process or another ``Store`` has the store open, which excludes the operation."""


class ChangedError(_SystemError):
    """A remote object changed while it was read. Opening it again reads the new version.

    Also: a snapshot was replaced after it was pickled, or the manifest of a destination is older
    than that of the generation which a follower has.
    """

    errno = errno.ESTALE


class ClosedError(Error):
    """The snapshot, store, scan, transaction, watch or writer is closed."""


class ConditionError(Error):
    """A condition was not met, and nothing was written."""

    write: int | None
    """Index of the condition in its batch or transaction, from 0."""

    def __init__(self, message: str, code: str = "condition-unmet", write: int | None = None):
        super().__init__(message, code)
        self.args = (message, code, write)
        self.write = write


class ConflictError(Error):
    """The cache has a chunk with other bytes, or the hash of bytes differs from their name.

    Also: another publisher has replaced the manifest of a destination.
    """


class DamagedError(Error):
    """The files are damaged or of another kind, or a write to the disk failed."""


class FullError(Error):
    """The store, a queue or the memory of a server has reached its limit."""


class GateError(Error):
    """Gates of a job did not let a snapshot pass. Nothing was published."""

    findings: tuple[str, ...]
    """What each of these gates expected and found."""

    def __init__(self, message: str, code: str = "gates", findings: tuple[str, ...] = ()):
        super().__init__(message, code)
        self.args = (message, code, findings)
        self.findings = findings


class NotFoundError(_SystemError, FileNotFoundError):
    """The file, the object at a URL, or a generation of a destination does not exist."""

    errno = errno.ENOENT


class SignatureError(Error):
    """A manifest has no signature by a trusted key, or its next version needs a key."""


class UnavailableError(_SystemError, ConnectionError):
    """A server, an origin or a destination cannot be reached, or ended the call.

    A later call may succeed.

    Also: ``offline`` is set, and the cache does not have the bytes or may not use their version.
    """

    errno = errno.ENOTCONN


class UnsupportedError(Error):
    """A newer version has written the file, or this build lacks something that it needs."""


class WatchError(Error):
    """A watch needs changes that are not kept. Scan the table, then watch from there."""


class WrongTypeError(Error, TypeError):
    """The value of a key has another type than the requested one."""


_BY_CODE: dict[str, type[Error]] = {
    **dict.fromkeys(("denied", "forbidden", "read-only", "unauthenticated"), AccessError),
    **dict.fromkeys(
        ("argument", "length", "no-table", "options", "table", "too-long", "unordered"),
        ArgumentError,
    ),
    **dict.fromkeys(("address", "buffer", "key", "offsets", "range", "too-large"), ArgumentError),
    **dict.fromkeys(("duplicate", "limit"), ArgumentError),
    **dict.fromkeys(("already-open", "in-use", "other-locks"), BusyError),
    "changed": ChangedError,
    "closed": ClosedError,
    "not-found": NotFoundError,
    "condition-unmet": ConditionError,
    **dict.fromkeys(("conflict", "content"), ConflictError),
    **dict.fromkeys(("not-a-snapshot", "not-durable", "unreadable"), DamagedError),
    "unsupported": UnsupportedError,
    "wrong-type": WrongTypeError,
    **dict.fromkeys(("answer", "broken", "corrupt", "decode", "not-a-store"), DamagedError),
    **dict.fromkeys(
        ("full", "memory", "queue-full", "readers-full", "transaction-full"), FullError
    ),
    **dict.fromkeys(
        ("deadline", "draining", "expired", "offline", "transport", "unreachable"),
        UnavailableError,
    ),
    **dict.fromkeys(("contents", "manifest"), DamagedError),
    "gates": GateError,
    "nothing-published": NotFoundError,
    "older-manifest": ChangedError,
    "signature": SignatureError,
    "store": UnavailableError,
    **dict.fromkeys(("ahead", "fell-behind", "no-changes-kept"), WatchError),
    **dict.fromkeys(
        ("cache", "folder", "group", "internal", "io", "lmdb", "populate", "setup", "status"),
        Error,
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


_BY_NUMBER: dict[int | None, type[Error]] = {
    errno.EACCES: AccessError,
    errno.EPERM: AccessError,
    errno.ENOENT: NotFoundError,
}


def from_snapshot(
    code: str,
    message: str,
    path: str | None = None,
    offset: int | None = None,
    expected: str | None = None,
    found: str | None = None,
    number: int | None = None,
) -> Error:
    """Creates the exception for an error of a snapshot.

    Args:
        code: The code.
        message: The message.
        path: Path of the file.
        offset: Offset in the file in bytes.
        expected: What was expected there.
        found: What was found there.
        number: The ``errno`` of a system call that failed.
    """
    kind = _BY_CODE.get(code, Error)
    if code == "io":
        kind = _BY_NUMBER.get(number, Error)
    error = kind(message, code)
    error.path, error.offset, error.expected, error.found = path, offset, expected, found
    return error


def wrong_type(code: str, message: str, expected: str, found: str) -> Error:
    """Creates the exception for a value of another type.

    Args:
        code: The code.
        message: The message.
        expected: The requested type.
        found: The type of the value.
    """
    return from_snapshot(code, message, expected=expected, found=found)
