"""Jobs of ``nuthatch populate``: snapshots from databases and files, checked and published."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from nuthatch.errors import Error, GateError, NotFoundError

__all__ = ["Gate", "PopulateReport", "PopulateSource", "Publication", "populate"]

_PROGRAM = "nuthatch-populate"
# The exit status if a gate failed.
_GATES_FAILED = 1
# Seconds that an interrupted program has to remove its files.
_GRACE = 30.0

_Path: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class PopulateSource:
    """What was read of a source."""

    source: str
    """The address, without secrets."""
    rows: int
    """Number of rows read."""
    entries: int
    """Number of entries made of them."""
    seconds: float
    """The time of reading."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of a gate."""

    gate: str
    """The name of the gate, as in the job."""
    expected: str
    """What it expects."""
    found: str
    """What it found."""
    passed: bool
    """Whether it passed."""


@dataclass(frozen=True, slots=True)
class Publication:
    """The generation that a job published."""

    generation: int
    """The number of the current generation."""
    is_unchanged: bool
    """Whether the current generation already had the same contents. There is no new one then."""
    bytes: int
    """Length of the files of the generation in bytes."""
    uploaded_bytes: int
    """Bytes that were uploaded."""


@dataclass(frozen=True, slots=True)
class PopulateReport:
    """The report of a job."""

    output: Path
    """The path of the snapshot."""
    is_incremental: bool
    """Whether changed rows were merged with the last generation."""
    entries: int
    """Number of entries of the snapshot."""
    bytes: int
    """Length of the snapshot in bytes."""
    sources: tuple[PopulateSource, ...]
    """The sources, in the order of the job."""
    gates: tuple[Gate, ...]
    """The gates, all passed."""
    published: Publication | None
    """The publication, if the job has one."""
    attempts: int
    """Number of attempts."""
    seconds: float
    """The time of all attempts."""


def populate(
    job: _Path,
    *,
    output: _Path | None = None,
    publish: _Path | None = None,
    program: _Path | None = None,
) -> PopulateReport:
    """Runs a job of ``nuthatch populate`` once.

    The program ``nuthatch-populate`` does the work in a process of its own. It is searched in the
    folder of ``nuthatch``, then in ``PATH``.

    Args:
        job: The job file, in TOML.
        output: The path of the snapshot, instead of that in the job.
        publish: The destination of publication, instead of that in the job.
        program: The path of ``nuthatch-populate``.

    Returns:
        The report of the run.

    Raises:
        GateError: Gates did not let the snapshot pass. Nothing was published.
        NotFoundError: The program does not exist.
        Error: The job is invalid or failed. The code is ``populate``.
    """
    command = [_find(program), "--json"]
    if output is not None:
        command += ["--output", os.fspath(output)]
    if publish is not None:
        command += ["--publish", os.fspath(publish)]
    status, printed, message = _run([*command, "--", os.fspath(job)])
    if status == 0:
        return _report(json.loads(printed))
    if status == _GATES_FAILED:
        found = tuple(line.strip() for line in message.splitlines() if line.startswith("  "))
        raise GateError(message, "gates", found)
    raise Error(message or f"{_PROGRAM} ended with status {status}", "populate")


def _find(program: _Path | None) -> str:
    """Returns the path of the program."""
    if program is None:
        main = shutil.which("nuthatch")
        folders = [os.path.dirname(os.path.realpath(main))] if main else []
        paths = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
        found = shutil.which(_PROGRAM, path=paths)
    else:
        found = shutil.which(os.fspath(program))
    if found is None:
        where = "beside nuthatch or in PATH" if program is None else f"at {os.fspath(program)}"
        message = f"populate: expected the program {_PROGRAM} {where}, found none"
        raise NotFoundError(message, "not-found")
    return found


class _Program(threading.Thread):
    """A thread that runs a program.

    Signals interrupt the main thread only, so none can come between the start of the program and
    the moment at which it can be ended.
    """

    def __init__(self, command: list[str]) -> None:
        super().__init__(name=_PROGRAM, daemon=True)
        self._command = command
        self._launched = threading.Event()
        # `join` does not wait again after an interrupt, in CPython before 3.13.
        self._ended = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self.failure: OSError | None = None
        self.output, self.errors = b"", b""

    def run(self) -> None:
        try:
            self._run_program()
        finally:
            self._launched.set()
            self._ended.set()

    def _run_program(self) -> None:
        try:
            # In a process group of its own, since a second signal would end it before it removes
            # its files: Ctrl-C would send it one, and this process another one.
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as failure:
            self.failure = failure
            return
        self._launched.set()
        self.output, self.errors = self.process.communicate()

    def wait(self) -> None:
        """Waits for the end of the program."""
        self._ended.wait()

    def end(self) -> None:
        """Ends the program, which removes its files if it has the time."""
        # The wait times out only if the thread was interrupted before it began.
        self._launched.wait(_GRACE)
        if self.process is None:
            return
        try:
            self.process.terminate()
            self._ended.wait(_GRACE)
        finally:
            self.process.kill()


def _run(command: list[str]) -> tuple[int, str, str]:
    """Runs a program. Returns its exit status, its output and the text of its last error."""
    program = _Program(command)
    try:
        program.start()
        program.wait()
    except BaseException:
        program.end()
        raise
    if program.failure is not None:
        raise program.failure
    assert program.process is not None
    message = program.errors.decode(errors="replace").strip().removeprefix("nuthatch: ")
    return program.process.returncode, program.output.decode(), message


def _report(fields: dict[str, Any]) -> PopulateReport:
    """Converts the report of the program. Fields of later versions are ignored."""
    published = fields["published"]
    return PopulateReport(
        output=Path(fields["output"]),
        is_incremental=fields["incremental"],
        entries=fields["entries"],
        bytes=fields["bytes"],
        sources=tuple(
            PopulateSource(each["source"], each["rows"], each["entries"], each["seconds"])
            for each in fields["sources"]
        ),
        gates=tuple(
            Gate(each["gate"], each["expected"], each["found"], each["passed"])
            for each in fields["gates"]
        ),
        published=published
        and Publication(
            published["generation"],
            published["unchanged"],
            published["bytes"],
            published["uploaded_bytes"],
        ),
        attempts=fields["attempts"],
        seconds=fields["seconds"],
    )
