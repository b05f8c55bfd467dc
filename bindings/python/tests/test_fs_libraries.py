"""Libraries that read through the cache get the right bytes, and each byte is fetched once."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy
import pandas
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
import xarray

from nuthatch.fs import NuthatchCache
from origin import Origin

ROWS = 50_000


@pytest.fixture(scope="module")
def table() -> pandas.DataFrame:
    draw = numpy.random.default_rng(1)
    columns = {"number": range(ROWS), "value": draw.random(ROWS), "part": draw.integers(0, 4, ROWS)}
    return pandas.DataFrame(columns)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, table: pandas.DataFrame) -> Path:
    """Writes the same table in the formats of these libraries."""
    folder = tmp_path_factory.mktemp("files")
    table.to_csv(folder / "table.csv", index=False)
    table.to_parquet(folder / "table.parquet", index=False, row_group_size=ROWS // 10)
    table.to_parquet(folder / "parts", index=False, partition_cols=["part"])
    array = xarray.Dataset.from_dataframe(table.set_index("number"))
    array.to_netcdf(folder / "table.nc", engine="h5netcdf")
    return folder


@pytest.fixture
def origin(origin: Origin, files: Path) -> Origin:
    for path in files.iterdir():
        if path.is_file():
            origin.put(f"/{path.name}", path.read_bytes())
    return origin


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"cache": str(tmp_path / "cache"), "limit": 256 << 20}


def twice(origin: Origin, read: Callable[[], object]) -> None:
    """Reads twice, the second time without a request for a range."""

    def asked() -> int:
        return sum(asked is not None for _, _, asked in origin.requests)

    read()
    first = asked()
    assert first > 0
    read()
    assert asked() == first


@pytest.mark.parametrize("form", ["nuthatch::", "nuthatch://"])
def test_pandas(
    form: str, origin: Origin, options: dict[str, Any], table: pandas.DataFrame
) -> None:
    url = f"{form}{origin.address}/table"

    def read() -> None:
        found = pandas.read_csv(f"{url}.csv", storage_options=options)
        pandas.testing.assert_frame_equal(found, table)
        columns = ["number", "part"]
        found = pandas.read_parquet(f"{url}.parquet", storage_options=options, columns=columns)
        pandas.testing.assert_frame_equal(found, table[columns])

    twice(origin, read)


def test_pyarrow(origin: Origin, options: dict[str, Any], table: pandas.DataFrame) -> None:
    options["block_size"] = 16 << 10
    fs = NuthatchCache(target="http", **options)
    url, size = f"{origin.address}/table.parquet", len(origin.files["/table.parquet"].data)

    def read() -> None:
        with fs.open(url) as file:
            groups = pyarrow.parquet.ParquetFile(file)
            found = groups.read_row_group(7, columns=["value"]).to_pandas()
        assert found["value"].tolist() == table["value"][7 * 5000 : 8 * 5000].tolist()

    twice(origin, read)
    # The reads need one column of one group out of ten, and the footer.
    assert fs.counts.fetched_bytes < size / 4
    found = pyarrow.parquet.read_table(url, filesystem=fs).to_pandas()
    pandas.testing.assert_frame_equal(found, table)


def test_a_dataset_of_pyarrow(
    files: Path, options: dict[str, Any], table: pandas.DataFrame
) -> None:
    for _ in range(2):
        fs = NuthatchCache(target="file", **options, skip_instance_cache=True)
        dataset = pyarrow.dataset.dataset(str(files / "parts"), filesystem=fs, partitioning="hive")
        part = pyarrow.dataset.field("part")
        found = dataset.to_table(filter=part == 2, columns=["number"]).to_pandas()
        assert sorted(found["number"]) == table["number"][table["part"] == 2].tolist()
    assert fs.counts.fetched_bytes == 0


def test_xarray(origin: Origin, options: dict[str, Any], table: pandas.DataFrame) -> None:
    fs = NuthatchCache(target="http", block_size=64 << 10, **options)

    def read() -> None:
        with (
            fs.open(f"{origin.address}/table.nc") as file,
            xarray.open_dataset(file, engine="h5netcdf") as array,
        ):
            assert (
                array["value"][1000:1010].to_numpy().tolist() == table["value"][1000:1010].tolist()
            )
            assert float(array["value"].sum()) == pytest.approx(table["value"].sum())

    twice(origin, read)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps downloads and caches in the folder of the test, and blocks other network access."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", str(tmp_path / "downloads"))
    connect = socket.socket.connect

    def connect_here(one: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1", address
        connect(one, address)

    monkeypatch.setattr(socket.socket, "connect", connect_here)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("streaming", [False, True])
def test_datasets(
    kind: str,
    streaming: bool,
    files: Path,
    origin: Origin,
    options: dict[str, Any],
    table: pandas.DataFrame,
) -> None:
    # Streaming treats `nuthatch:///folder` as a relative path.
    for form in [f"nuthatch://{origin.address}"] + [f"nuthatch://{files}"] * (not streaming):
        found = datasets.load_dataset(
            kind,
            data_files=f"{form}/table.{kind}",
            storage_options=options,
            split="train",
            streaming=streaming,
        )
        rows = [row["value"] for row in found.take(100)]
        assert rows == table["value"][:100].tolist()


LOADER = """
import sys
from multiprocessing import get_context
from nuthatch.fs import NuthatchCache

def length(fs, url):
    return len(fs.cat_file(url))

if __name__ == "__main__":
    fs = NuthatchCache(target="http", cache=sys.argv[2])
    fs.cat_file(sys.argv[1], 0, 10)
    with get_context(sys.argv[3]).Pool(2) as pool:
        print(sum(pool.starmap(length, [(fs, sys.argv[1])] * 4)))
"""


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_workers_of_all_start_methods(start: str, origin: Origin, tmp_path: Path) -> None:
    url, program = f"{origin.address}/table.parquet", tmp_path / "loader.py"
    program.write_text(LOADER)
    command = [sys.executable, str(program), url, str(tmp_path / "cache"), start]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ)
    size = len(origin.files["/table.parquet"].data)
    assert (ran.returncode, ran.stdout) == (0, f"{4 * size}\n"), ran.stderr
