"""The examples in the README run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest
import xarray

from conftest import PROGRAM, ROOT, Server
from origin import Origin, serving

README = (ROOT / "bindings/python/README.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)

# PyArrow can abort the process at its exit, if files of fsspec were read: apache/arrow#45214. So
# examples that use it end before the interpreter does.
READS_WITH_PYARROW = re.compile("parquet|datasets")
EXIT = "\nimport os\nos._exit(0)\n"


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 11


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    """Starts a server of a table in several formats."""
    folder = tmp_path_factory.mktemp("files")
    table = pandas.DataFrame({"number": range(100), "value": [n / 7 for n in range(100)]})
    table.to_csv(folder / "table.csv", index=False)
    table.to_parquet(folder / "table.parquet", index=False)
    xarray.Dataset.from_dataframe(table).to_netcdf(folder / "table.nc", engine="h5netcdf")
    with serving() as origin:
        for path in folder.iterdir():
            origin.put(f"/{path.name}", path.read_bytes())
        yield origin


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_runs(snippet: str, server: Server, origin: Origin, tmp_path: Path) -> None:
    program = snippet.replace("grpc://127.0.0.1:7380", server.address)
    program = program.replace("https://host", origin.address).replace('"https"', '"http"')
    if READS_WITH_PYARROW.search(program):
        program += EXIT
    folders = {"NUTHATCH_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "datasets")}
    folders["PATH"] = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env={**os.environ, **folders},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
