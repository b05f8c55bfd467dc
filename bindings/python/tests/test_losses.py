"""Servers that stop and start again."""

import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nuthatch
from conftest import PROGRAM


class Restartable:
    """A server of a store that keeps changes, on a fixed port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self.start()

    def start(self) -> None:
        listen = f"127.0.0.1:{self.port}"
        command = [PROGRAM, "store", "serve", str(self.folder), "--create", "--listen", listen]
        command += ["--keep-changes", "1000", "--durability", "none"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening at grpc://"), line
        self.address = line.split()[-1]
        self.port = int(self.address.rsplit(":", 1)[1])

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()

    def refuse(self, count: int) -> None:
        """Listens on the server's port, and closes a number of connections without a response."""
        with socket.create_server(("127.0.0.1", self.port)) as nobody:
            nobody.settimeout(60)
            for _ in range(count):
                nobody.accept()[0].close()


@pytest.fixture
def restartable(tmp_path: Path) -> Iterator[Restartable]:
    server = Restartable(tmp_path / "store")
    yield server
    server.kill()


def test_a_watch_reconnects_for_a_time_and_not_a_few_times(restartable: Restartable) -> None:
    with nuthatch.connect(restartable.address) as store:
        # Creates the table that is watched.
        store.put(b"before", b"0")
    with (
        nuthatch.connect(restartable.address, retries=1, reconnect=3600) as store,
        store.watch() as watch,
        ThreadPoolExecutor(1) as threads,
    ):
        store.put(b"a", b"1")
        assert [change.key for change in next(watch)] == [b"a"]
        later = threads.submit(next, watch)
        restartable.kill()
        restartable.refuse(6)
        restartable.start()
        with nuthatch.connect(restartable.address) as other:
            other.put(b"b", b"2")
        assert [change.key for change in later.result(60)] == [b"b"]


def test_a_writer_reconnects_and_takes_later_batches(restartable: Restartable) -> None:
    with (
        nuthatch.connect(restartable.address, retries=1, reconnect=3600) as store,
        ThreadPoolExecutor(1) as threads,
    ):
        writer = store.writer()
        writer.put(b"a", b"1").result()
        restartable.kill()
        # The batch that is in progress during the loss fails, since its outcome is unknown.
        with pytest.raises(nuthatch.UnavailableError):
            while True:
                writer.flush()
        later = threads.submit(lambda: writer.put(b"b", b"2").result())
        restartable.refuse(6)
        restartable.start()
        later.result(60)
        assert store.get(b"b") == b"2"
        writer.close()


def test_a_client_that_gives_up_reconnecting_names_the_time(restartable: Restartable) -> None:
    with nuthatch.connect(restartable.address) as store:
        # Creates the table that is watched.
        store.put(b"before", b"0")
    with (
        nuthatch.connect(restartable.address, retries=1, reconnect=0.15) as store,
        store.watch() as watch,
    ):
        restartable.kill()
        with pytest.raises(nuthatch.UnavailableError, match="tried to reconnect for 150ms; `recon"):
            next(watch)
