"""The tests that fsspec has for every filesystem, over two targets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.tests import abstract

from nuthatch.fs import NuthatchCache


class Fixtures(abstract.AbstractFixtures):  # type: ignore[misc]
    target: str
    options: ClassVar[dict[str, Any]] = {}

    @pytest.fixture
    def fs(self, tmp_path: Path) -> Iterator[NuthatchCache]:
        yield NuthatchCache(
            target=self.target, target_options=self.options, cache=tmp_path / "cache"
        )
        MemoryFileSystem.store.clear()
        MemoryFileSystem.pseudo_dirs[:] = [""]

    @pytest.fixture
    def fs_path(self, tmp_path: Path) -> str:
        return str(tmp_path / "files") if self.target == "file" else "/files"

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return True


class Memory(Fixtures):
    target = "memory"


class Local(Fixtures):
    target = "file"
    options: ClassVar[dict[str, Any]] = {"auto_mkdir": True}


class TestMemoryGet(abstract.AbstractGetTests, Memory):  # type: ignore[misc]
    pass


class TestMemoryPut(abstract.AbstractPutTests, Memory):  # type: ignore[misc]
    pass


class TestMemoryPipe(abstract.AbstractPipeTests, Memory):  # type: ignore[misc]
    pass


class TestMemoryOpen(abstract.AbstractOpenTests, Memory):  # type: ignore[misc]
    pass


class TestLocalGet(abstract.AbstractGetTests, Local):  # type: ignore[misc]
    pass


class TestLocalPut(abstract.AbstractPutTests, Local):  # type: ignore[misc]
    pass


class TestLocalPipe(abstract.AbstractPipeTests, Local):  # type: ignore[misc]
    pass


class TestLocalOpen(abstract.AbstractOpenTests, Local):  # type: ignore[misc]
    pass


def test_the_target_is_what_the_tests_see() -> None:
    made: Any = NuthatchCache(target=fsspec.filesystem("file"))
    assert isinstance(made.target, LocalFileSystem)
