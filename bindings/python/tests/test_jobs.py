"""Jobs of ``nuthatch populate`` from Python."""

import contextlib
import itertools
import os
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

import nuthatch
from conftest import POPULATE
from nuthatch.jobs import Gate, Publication

JOB = """
output = "users.nut"
publish = "shared"
[[source]]
from = "sqlite:users.db"
query = "select id, name from users"
key = "user:{id}.{column}"
[gates]
min_entries = 2
required_keys = ["user:1.name"]
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "users.db") as database:
        database.execute("create table users(id integer primary key, name text)")
        database.executemany("insert into users values (?, ?)", [(1, "Ada"), (2, "Grace")])
    database.close()
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "job.toml"


def test_a_job_returns_its_report(job: Path, tmp_path: Path) -> None:
    report = nuthatch.populate(job, program=POPULATE)
    assert (report.output, report.entries) == (tmp_path / "users.nut", 2)
    assert (report.is_incremental, report.attempts) == (False, 1)
    assert [(each.rows, each.entries) for each in report.sources] == [(2, 2)]
    assert report.gates == (
        Gate("min_entries", "at least 2", "2", True),
        Gate("required_keys", '"user:1.name"', "the key", True),
    )
    size = (tmp_path / "users.nut").stat().st_size
    assert report.bytes == size
    assert report.published == Publication(1, False, size, size)
    with nuthatch.open_snapshot(report.output) as users:
        assert users["user:2.name"] == "Grace"


def test_arguments_replace_fields_of_the_job(job: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "other.nut", tmp_path / "elsewhere"
    report = nuthatch.populate(job, output=output, publish=other, program=POPULATE)
    assert report.output == output
    assert [each.id for each in nuthatch.delivery.generations(other)] == [1]
    assert not (tmp_path / "shared").exists()


def test_gates_that_fail_are_listed(job: Path, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "users.db") as database:
        database.execute("delete from users where id = 1")
    database.close()
    with pytest.raises(nuthatch.GateError, match="nothing was published") as error:
        nuthatch.populate(job, program=POPULATE)
    assert error.value.code == "gates"
    first, second = error.value.findings
    assert first == "min_entries: expected at least 2, found 1"
    assert second == 'required_keys: expected "user:1.name", found no such key'
    assert not (tmp_path / "users.nut").exists()


def test_a_job_that_fails_has_the_message_of_the_program(job: Path, tmp_path: Path) -> None:
    (tmp_path / "users.db").unlink()
    with pytest.raises(nuthatch.Error, match=r"users\.db") as error:
        nuthatch.populate(job, program=POPULATE)
    assert error.value.code == "populate"
    assert not str(error.value).startswith("nuthatch:")


def test_the_program_is_found_beside_nuthatch_and_in_path(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(POPULATE).parent))
    assert nuthatch.populate(job).entries == 2
    # A link to `nuthatch` leads to the folder of both.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nuthatch").symlink_to(Path(POPULATE).with_name("nuthatch"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert nuthatch.populate(job).entries == 2
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(nuthatch.NotFoundError, match="beside nuthatch or in PATH"):
        nuthatch.populate(job)
    with pytest.raises(nuthatch.NotFoundError, match="at /none"):
        nuthatch.populate(job, program="/none")


def test_an_interrupt_ends_the_program(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    source = f'[[source]]\nfrom = "{tmp_path}/rows.csv"\nkey = "{{id}}"\n'
    (tmp_path / "pipe.toml").write_text(f'output = "{tmp_path}/piped.nut"\n' + source)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        """Writes rows until the program has ended. Opening the pipe waits for its start."""
        with (tmp_path / "rows.csv").open("wb", buffering=0) as pipe:
            pipe.write(b"id,v\n1,2\n")
            signal.pthread_kill(main, signal.SIGINT)
            with contextlib.suppress(BrokenPipeError):
                for start in itertools.count(2, 1000):
                    pipe.write(b"".join(b"%d,2\n" % n for n in range(start, start + 1000)))

    thread = threading.Thread(target=interrupt)
    # A process in the background of a shell ignores the signal otherwise.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            nuthatch.populate(tmp_path / "pipe.toml", program=POPULATE)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pipe.toml", "rows.csv"]
