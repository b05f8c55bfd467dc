"""Fixtures: stores of all four kinds, in this process and behind a server, blocking and
asynchronous."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import nuthatch
from call_modes import Store
from origin import Origin, serving

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("NUTHATCH_PROGRAM", str(ROOT / "target/debug/nuthatch"))
POPULATE = str(Path(PROGRAM).with_name("nuthatch-populate"))
KINDS = ["here-sync", "here-async", "remote-sync", "remote-async"]


class Server(NamedTuple):
    address: str
    folder: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts a server of a store that keeps changes. Tests can leave rows in its tables."""
    folder = tmp_path_factory.mktemp("served") / "store"
    command = [PROGRAM, "store", "serve", str(folder), "--create", "--listen", "127.0.0.1:0"]
    command += ["--keep-changes", "100000", "--durability", "none", "--drain-ms", "100"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening at grpc://"), line
    yield Server(line.split()[-1], folder)
    process.terminate()
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0, rest


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, server: Server, tmp_path: Path
) -> AsyncIterator[Store]:
    """Opens an empty store of each kind, which keeps changes."""
    if request.param.startswith("here"):
        with nuthatch.open(tmp_path / "store", durability="none") as first:
            first.keep_changes(100_000)
    else:
        with nuthatch.connect(server.address) as first:
            for name in ["default", *first.tables()]:
                first.table(name).delete_range()
    match request.param:
        case "here-sync":
            with nuthatch.open(tmp_path / "store", durability="none") as waiting:
                yield waiting
        case "here-async":
            async with nuthatch.aio.open(tmp_path / "store", durability="none") as asynchronous:
                yield asynchronous
        case "remote-sync":
            with nuthatch.connect(server.address) as waiting:
                yield waiting
        case _:
            async with nuthatch.aio.connect(server.address) as asynchronous:
                yield asynchronous


@pytest.fixture
def here(tmp_path: Path) -> Iterator[nuthatch.Store]:
    """Opens a store in this process, with blocking calls."""
    with nuthatch.open(tmp_path / "store", durability="none") as opened:
        yield opened


@pytest.fixture
def origin() -> Iterator[Origin]:
    """Starts an HTTP server without files."""
    with serving() as served:
        yield served
