"""The test suite of fsspec for filesystems, over two targets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.tests import abstract

from nuthatch.fs import NuthatchCache


class Fixtures(abstract.AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture(params=["memory", "file"])
    def target(self, request: pytest.FixtureRequest) -> str:
        name: str = request.param
        return name

    @pytest.fixture
    def fs(self, target: str, tmp_path: Path) -> Iterator[NuthatchCache]:
        options = {"auto_mkdir": True} if target == "file" else {}
        yield NuthatchCache(target=target, target_options=options, cache=tmp_path / "cache")
        MemoryFileSystem.store.clear()
        MemoryFileSystem.pseudo_dirs[:] = [""]

    @pytest.fixture
    def fs_path(self, target: str, tmp_path: Path) -> str:
        return str(tmp_path / "files") if target == "file" else "/files"

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return True


class TestGet(abstract.AbstractGetTests, Fixtures):  # type: ignore[misc]
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):  # type: ignore[misc]
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):  # type: ignore[misc]
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):  # type: ignore[misc]
    pass


def test_an_instance_of_a_filesystem_can_be_the_target() -> None:
    made: Any = NuthatchCache(target=fsspec.filesystem("file"))
    assert isinstance(made.target, LocalFileSystem)
