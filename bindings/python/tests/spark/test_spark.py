"""The data source of PySpark, in local mode: shards, retries, failures, and reading back."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from pyspark.sql import DataFrame, SparkSession

import nuthatch
import nuthatch.spark
from conftest import PROGRAM, ROOT
from nuthatch import delivery

# Spark and Py4J leave sockets open.
pytestmark = pytest.mark.filterwarnings("default")

ROWS = 3000
KEY = "user:{id}.{column}"


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Starts a server of moto with a bucket, and sets the environment of Spark's processes."""
    environment = Path(PROGRAM).parent.parent / "moto"
    requirements = ROOT / "crates/testing/moto/requirements.txt"
    subprocess.run([ROOT / "scripts/venv", environment, requirements], check=True)
    process = subprocess.Popen(
        [environment / "bin/moto_server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": ""},
        text=True,
    )
    assert process.stderr is not None
    line = next(line for line in process.stderr if "Running on http://" in line)
    address = line.split()[-1]
    # Reads the rest of the log, so that the server never waits for room in the pipe.
    drain = threading.Thread(target=process.stderr.read)
    drain.start()
    variables = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "a5ecret",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "PYSPARK_PYTHON": sys.executable,
    }
    credential = "AWS4-HMAC-SHA256 Credential=id/20200101/us-east-1/s3/aws4_request"
    signed = {"Authorization": f"{credential}, SignedHeaders=host, Signature=0"}
    urlopen(Request(f"{address}/bucket", method="PUT", headers=signed)).close()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield address
    process.terminate()
    process.wait(30)
    drain.join()
    process.stderr.close()


@pytest.fixture(scope="module")
def spark(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Starts Spark on this machine. A task is attempted three times."""
    assert store
    folder = str(tmp_path_factory.mktemp("spark"))
    builder = SparkSession.Builder().master("local[2,3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.local.dir", folder).config("spark.sql.warehouse.dir", folder)
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    nuthatch.spark.register(session)
    yield session
    session.stop()
    gateway = session.sparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


def users(spark: SparkSession, partitions: int = 3) -> DataFrame:
    table = spark.range(ROWS, numPartitions=partitions)
    return table.selectExpr(
        "id",
        "concat('name ', id) as name",
        "if(id % 3 = 0, null, id / 7) as score",
        "array(cast(id as float), 0.5f) as vector",
    )


def built_by_the_command(folder: Path, shards: int, *options: str) -> dict[str, bytes]:
    """Builds the same set with `nuthatch build` on one machine, and returns its files."""
    folder.mkdir()
    with (folder / "rows.jsonl").open("w") as rows:
        for row in range(ROWS):
            entries: dict[str, Any] = {"name": f"name {row}", "vector": {"$f32": [row, 0.5]}}
            if row % 3:
                entries["score"] = row / 7
            for column, value in entries.items():
                rows.write(json.dumps({"key": f"user:{row}.{column}", "value": value}) + "\n")
    command = [PROGRAM, "build", "rows.jsonl", "-o", "set.nut", "--shards", str(shards), "--quiet"]
    subprocess.run([*command, *options], cwd=folder, check=True)
    return {each.name: each.read_bytes() for each in folder.glob("*.shard")}


def shards_of(destination: str, folder: Path) -> dict[str, bytes]:
    """Follows a destination, and returns its shards."""
    with delivery.Follower(destination, folder) as follower:
        swapped = follower.check()
        assert swapped is not None
        with nuthatch.open_snapshot(swapped.path) as snapshot:
            snapshot.verify()
    generation = swapped.path.resolve().parent
    return {each.name: each.read_bytes() for each in generation.glob("*.shard")}


def destination_of(place: str, tmp_path: Path) -> str:
    return str(tmp_path / "shared") if place == "folder" else f"s3://bucket/{tmp_path.name}"


@pytest.mark.parametrize("place", ["folder", "s3"])
def test_shards_are_those_of_build_on_one_machine(
    spark: SparkSession, place: str, tmp_path: Path
) -> None:
    destination, table = destination_of(place, tmp_path), users(spark)
    expected = built_by_the_command(tmp_path / "expected", 8)
    assert len(expected) == 8
    nuthatch.spark.save(table, destination, key=KEY, shards=8)
    assert shards_of(destination, tmp_path / "saved") == expected
    # Tasks have uploaded the shards. The driver has uploaded the manifest of the set.
    files = delivery.generations(destination)[0].files
    assert ["-job-" in file.object for file in files] == [False] + 8 * [True]

    # Without the repartition, the driver merges the shards of three partitions.
    options = {"path": destination, "key": KEY, "shards": "8"}
    table.write.format("nuthatch").mode("overwrite").options(**options).save()
    assert [each.id for each in delivery.generations(destination)] == [1]
    assert shards_of(destination, tmp_path / "saved again") == expected


def test_compressed_shards_are_those_of_build(spark: SparkSession, tmp_path: Path) -> None:
    expected = built_by_the_command(tmp_path / "expected", 4, "--compress", "zstd")
    nuthatch.spark.save(
        users(spark), tmp_path / "shared", key=KEY, shards=4, compress="zstd", name="users.nut"
    )
    assert shards_of(str(tmp_path / "shared"), tmp_path / "there") == expected
    assert delivery.generations(tmp_path / "shared")[0].name == "users.nut"


@pytest.mark.parametrize("place", ["folder", "s3"])
def test_a_generation_is_read_back(spark: SparkSession, place: str, tmp_path: Path) -> None:
    destination = destination_of(place, tmp_path)
    nuthatch.spark.save(users(spark), destination, key=KEY, shards=4)
    read = spark.read.format("nuthatch").load(destination)
    assert read.count() == 3 * ROWS - ROWS // 3
    found = {row.key: row for row in read.where("key like 'user:7.%'").collect()}
    assert set(found) == {"user:7.name", "user:7.score", "user:7.vector"}
    name, score, vector = (found[f"user:7.{column}"] for column in ("name", "score", "vector"))
    assert (name.type, name.string, name.f64) == ("string", "name 7", None)
    assert (score.type, score.f64, score.string) == ("f64", 1.0, None)
    assert (vector.type, vector.f32_list, vector.f64_list) == ("f32_list", [7.0, 0.5], None)
    # The rows of a type make the same entries again.
    again = read.where("type = 'string'").select("key", "string")
    nuthatch.spark.save(again, tmp_path / "again", key="{key}", shards=2)
    assert delivery.generations(tmp_path / "again")[0].entries == ROWS


def test_all_types_and_a_single_file_are_read_back(spark: SparkSession, tmp_path: Path) -> None:
    rows = {
        "a": b"\xff",
        "b": "text",
        "c": True,
        "d": 7,
        "e": 0.5,
        "f": [1, 2],
        "g": ["x"],
        "h": [],
    }
    nuthatch.build_snapshot(tmp_path / "a.nut", {**rows, "i": [0.5]})
    delivery.publish(tmp_path / "a.nut", tmp_path / "shared")
    nuthatch.build_snapshot(tmp_path / "a.nut", {"new": 1})
    delivery.publish(tmp_path / "a.nut", tmp_path / "shared")
    reader = spark.read.format("nuthatch").option("generation", 1)
    found = {row.key: row.asDict() for row in reader.load(str(tmp_path / "shared")).collect()}
    types = ["bytes", "string", "bool", "i64", "f64", "i64_list", "string_list", "empty_list"]
    types += ["f64_list"]
    assert [found[key]["type"] for key in "abcdefghi"] == types
    values = {key: found[key].get(kind) for key, kind in zip("abcdefghi", types, strict=True)}
    assert values == {**rows, "h": None, "i": [0.5]}


def test_an_attempt_that_fails_adds_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The first attempt of each task fails at its end, when it has rows of all shards."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def fail_once(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        mark = marks / str(context.partitionId())
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the executor is lost")

    table = users(spark)
    failing = table.mapInArrow(fail_once, table.schema)
    options = {"path": str(tmp_path / "shared"), "key": KEY, "shards": "8"}
    failing.write.format("nuthatch").mode("overwrite").options(**options).save()
    assert len(list(marks.iterdir())) == 3
    expected = built_by_the_command(tmp_path / "expected", 8)
    assert shards_of(str(tmp_path / "shared"), tmp_path / "there") == expected
    assert sorted(each.name for each in (tmp_path / "shared").iterdir()) == [
        ".lock",
        "manifest.json",
        "objects",
    ]


def test_attempts_of_uploads_leave_one_object_of_each_shard(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The first attempt of each task that uploads shards fails after that."""
    marks = tmp_path / "marks"
    marks.mkdir()

    # Classes of a function are sent to the workers; those of a module are imported there.
    class FailingWriter(nuthatch.spark._Writer):
        def write(self, iterator: Iterator[Any]) -> Any:
            from pyspark import TaskContext

            message = super().write(iterator)
            context = TaskContext.get()
            assert context is not None
            mark = marks / str(context.partitionId())
            if message.uploaded and not mark.exists():
                mark.touch()
                raise RuntimeError("the executor is lost")
            return message

    class FailingSource(nuthatch.spark.NuthatchDataSource):
        @classmethod
        def name(cls) -> str:
            return "failing"

        def writer(self, schema: Any, overwrite: bool) -> Any:
            made = super().writer(schema, overwrite)
            assert isinstance(made, nuthatch.spark._Writer)
            return FailingWriter(made._options, made._has_parts)

    spark.dataSource.register(FailingSource)
    build = {"shards": 8, "seed": 0, "on_duplicate": "error"}
    mapping = nuthatch.spark._Mapping(KEY, None, None, "absent")
    writer = nuthatch.spark._parts(users(spark), mapping, build).write.format("failing")
    writer.mode("overwrite").options(path=str(tmp_path / "shared"), shards="8").save()
    assert list(marks.iterdir())
    expected = built_by_the_command(tmp_path / "expected", 8)
    assert shards_of(str(tmp_path / "shared"), tmp_path / "there") == expected
    assert len(list((tmp_path / "shared/objects").iterdir())) == 9


def test_the_next_generation_uploads_changed_shards_with_deltas(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = users(spark).repartition(1).selectExpr("id", "repeat(name, 99) as name")
    changed = table.selectExpr("id", "if(id = 7, 'changed', name) as name")
    for each in (table, changed):
        nuthatch.spark.save(each, tmp_path / "shared", key=KEY, shards=4)
    first, second = delivery.generations(tmp_path / "shared")
    objects = [{file.object for file in each.files[1:]} for each in (first, second)]
    assert len(objects[0] & objects[1]) == 3
    deltas = json.loads((tmp_path / "shared/manifest.json").read_text())["generations"][1]["files"]
    assert [bool(file.get("delta")) for file in deltas].count(True) == 1


@pytest.mark.parametrize("place", ["folder", "s3"])
def test_a_job_that_fails_publishes_nothing(
    spark: SparkSession, place: str, tmp_path: Path
) -> None:
    destination = destination_of(place, tmp_path)
    nuthatch.spark.save(users(spark), destination, key=KEY, shards=2)
    table = users(spark).selectExpr("if(id = 2999, null, id) as id", "name")
    options = {"path": destination, "key": KEY, "shards": "2"}
    with pytest.raises(Exception, match='column "id": expected a value for the key'):
        table.write.format("nuthatch").mode("overwrite").options(**options).save()
    # Regression test of the commit: a key in two partitions is found by the driver.
    doubled = users(spark).selectExpr("id % 2000 as id", "name")
    with pytest.raises(Exception, match="duplicate key"):
        doubled.write.format("nuthatch").mode("overwrite").options(**options).save()
    with pytest.raises(Exception, match="duplicate key"):
        nuthatch.spark.save(doubled, destination, key=KEY, shards=2)
    assert [each.id for each in delivery.generations(destination)] == [1]
    # A task that uploads fails after other tasks have uploaded.
    failing = nuthatch.spark._parts(
        users(spark), nuthatch.spark._Mapping(KEY, None, None, "absent"), {"shards": 4}
    )
    broken = "if(nuthatch_shard = 3, cast('no part' as binary), nuthatch_part) as nuthatch_part"
    writer = failing.selectExpr("nuthatch_shard", broken).write.format("nuthatch")
    with pytest.raises(Exception, match="snapshot"):
        writer.mode("overwrite").options(path=destination, shards="4").save()
    if place == "folder":
        assert not (tmp_path / "shared/staging").exists()
        assert len(list((tmp_path / "shared/objects").iterdir())) == 3
    else:
        listed = urlopen(f"{os.environ['AWS_ENDPOINT_URL']}/bucket?prefix={tmp_path.name}/").read()
        assert b"manifest.json" in listed
        assert b"staging" not in listed
        assert listed.count(b"<Key>") == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shards": "0"}, "shards: expected 1 to 65536, found 0"),
        ({"shards": "many"}, "shards: expected a number, found 'many'"),
        ({"shard": "7"}, "shard: expected no option of this name"),
        ({"types": "x"}, "types: expected a dict in JSON"),
        ({"key": "{x}"}, 'expected a column "x"'),
    ],
)
def test_options_are_checked(
    spark: SparkSession, options: dict[str, str], message: str, tmp_path: Path
) -> None:
    table = users(spark, 1).select("id", "name")
    writer = table.write.format("nuthatch").option("key", "{id}").options(**options)
    with pytest.raises(Exception, match=message):
        writer.mode("overwrite").save(str(tmp_path / "shared"))
    assert not (tmp_path / "shared/manifest.json").exists()


def test_a_generation_is_not_appended_to(spark: SparkSession, tmp_path: Path) -> None:
    writer = users(spark).write.format("nuthatch").option("key", KEY)
    with pytest.raises(Exception, match=r"expected the mode .overwrite."):
        writer.mode("append").save(str(tmp_path / "shared"))


def test_columns_key_and_value_need_no_options(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame([("a", 1), ("b", 2)], "key string, value bigint")
    table.write.format("nuthatch").mode("overwrite").save(str(tmp_path / "shared"))
    empty = table.where("false")
    generation = delivery.generations(tmp_path / "shared")[0]
    assert (generation.entries, len(generation.files)) == (2, 17)
    empty.write.format("nuthatch").mode("overwrite").save(str(tmp_path / "shared"))
    assert delivery.generations(tmp_path / "shared")[1].entries == 0
