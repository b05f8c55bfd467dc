"""Publication, generations and followers, blocking and asynchronous."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import nuthatch
from call_modes import settle
from conftest import PROGRAM
from nuthatch import delivery
from origin import Origin, serving


class Place(NamedTuple):
    """A folder, and the module whose functions are tested."""

    path: Path
    module: Any

    def build(self, version: int, **options: Any) -> Path:
        file = self.path / "users.nut"
        rows = {f"user:{n}": n for n in range(100)} | {"version": version}
        nuthatch.build_snapshot(file, rows, metadata={"version": str(version)}, **options)
        return file

    async def publish(self, version: int, **options: Any) -> delivery.Published:
        file = self.build(version)
        published = await settle(self.module.publish(file, self.path / "shared", **options))
        assert isinstance(published, delivery.Published)
        return published

    def follower(self, **options: Any) -> Any:
        return self.module.Follower(self.path / "shared", self.path / "there", **options)

    def version(self) -> Any:
        with nuthatch.open_snapshot(self.path / "there/users.nut") as snapshot:
            return snapshot["version"]

    def key(self, name: str) -> tuple[Path, Path]:
        """Creates a key pair, and returns the paths of its private and public key."""
        private, public = self.path / f"{name}.pem", self.path / f"{name}.pub"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
        return private, public


@pytest.fixture(params=["sync", "async"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, delivery if request.param == "sync" else nuthatch.aio)


async def test_generations_are_published_followed_and_rolled_back(place: Place) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    first = await place.publish(1)
    assert (first.generation, first.is_unchanged, first.removed) == (1, False, ())
    assert first.bytes == first.uploaded_bytes == (place.path / "users.nut").stat().st_size
    assert first.cleanup_failure is None
    follower = place.follower()
    assert (follower.path, follower.generation, follower.created) == (None, None, None)
    swapped = await settle(follower.check())
    assert swapped == delivery.Swapped(
        1, follower.created, place.path / "there/users.nut", first.bytes, 0, ()
    )
    assert began <= follower.created <= datetime.now(UTC)
    assert (follower.path, follower.generation) == (swapped.path, 1)
    assert place.version() == 1
    assert await settle(follower.check()) is None

    same = await place.publish(1)
    assert (same.generation, same.is_unchanged, same.uploaded_bytes) == (1, True, 0)
    await place.publish(2)
    assert (await settle(follower.check())).generation == 2
    assert place.version() == 2

    listed = await settle(place.module.roll_back(place.path / "shared", 1))
    assert listed == await settle(place.module.generations(place.path / "shared"))
    assert [(each.id, each.is_current, each.entries) for each in listed] == [
        (1, True, 101),
        (2, False, 101),
    ]
    assert [each.metadata for each in listed] == [{"version": "1"}, {"version": "2"}]
    assert listed[0].created == swapped.created
    assert (listed[0].name, listed[0].bytes) == ("users.nut", first.bytes)
    assert listed[0].files[0].object.startswith(listed[0].files[0].blake3)
    assert (await settle(follower.check())).generation == 1
    assert place.version() == 1
    await settle(follower.close())


async def test_the_command_reads_what_was_published(place: Place) -> None:
    await place.publish(1, name="other.nut")
    shared, there = place.path / "shared", place.path / "there"
    arguments = ("follow", shared, there, "--once")
    process = await asyncio.create_subprocess_exec(PROGRAM, *arguments, stdout=subprocess.DEVNULL)
    assert await process.wait() == 0
    with nuthatch.open_snapshot(there / "other.nut") as snapshot:
        assert snapshot["version"] == 1


async def test_generations_are_kept_by_number_and_age(place: Place) -> None:
    for version in range(4):
        published = await place.publish(version, keep=2)
    assert published.removed == (2,)
    listed = await settle(place.module.generations(place.path / "shared"))
    assert [each.id for each in listed] == [3, 4]
    assert (await place.publish(9, keep_age=1e9)).removed == ()
    for age, message in ((-1, "keep_age: expected seconds"), (float("nan"), "keep_age")):
        with pytest.raises(ValueError, match=message):
            await place.publish(10, keep_age=age)


async def test_changed_rows_are_fetched_as_a_delta_up_to_the_limits(place: Place) -> None:
    shared, follower = place.path / "shared", place.follower()
    file = place.path / "users.nut"

    async def publish(version: int, **options: Any) -> delivery.Published:
        rows = {f"user:{n}": f"a user with the number {n * n}" for n in range(5_000)}
        nuthatch.build_snapshot(file, rows | {"version": version})
        published = await settle(place.module.publish(file, shared, **options))
        assert isinstance(published, delivery.Published)
        return published

    first = await publish(1)
    assert (first.delta_bytes, first.delta_failures, first.unread_objects) == (0, (), ())
    await settle(follower.check())
    second = await publish(2)
    assert 0 < second.delta_bytes < second.bytes / 100
    swapped = await settle(follower.check())
    assert (swapped.built_files, swapped.delta_failures) == (1, ())
    assert swapped.fetched_bytes == second.delta_bytes
    assert place.version() == 2
    assert (await publish(3, delta_limit=1_000)).delta_bytes == 0
    swapped = await settle(follower.check())
    assert (swapped.built_files, swapped.fetched_bytes) == (0, second.bytes)
    await settle(follower.close())
    limited = place.follower(delta_limit=0)
    assert (await publish(4)).delta_bytes > 0
    assert (await settle(limited.check())).built_files == 0
    assert place.version() == 4
    await settle(limited.close())


async def test_a_set_of_shards_is_fetched_by_its_changes(place: Place) -> None:
    file = place.build(1, shards=8)
    await settle(place.module.publish(file, place.path / "shared"))
    follower = place.follower(previous=0)
    whole = await settle(follower.check())
    place.build(2, shards=8)
    published = await settle(place.module.publish(file, place.path / "shared"))
    assert 0 < published.uploaded_bytes < whole.fetched_bytes / 2
    assert (await settle(follower.check())).fetched_bytes == published.uploaded_bytes
    assert place.version() == 2
    assert len([each for each in (place.path / "there/.nuthatch").iterdir() if each.is_dir()]) <= 3


async def test_signatures_are_checked(place: Place) -> None:
    (private, public), (other, other_public) = place.key("a"), place.key("b")
    await place.publish(1, sign_key=private)
    with pytest.raises(nuthatch.SignatureError, match="set sign_key"):
        await place.publish(2)
    with pytest.raises(nuthatch.SignatureError, match="trusted key"):
        await place.publish(2, sign_key=other)
    with pytest.raises(nuthatch.SignatureError):
        await settle(place.module.generations(place.path / "shared", trust_keys=[other_public]))
    with pytest.raises(nuthatch.SignatureError):
        await settle(place.module.roll_back(place.path / "shared", 1))
    follower = place.follower(trust_keys=[other_public])
    with pytest.raises(nuthatch.SignatureError):
        await settle(follower.check())
    assert follower.generation is None
    await settle(follower.close())
    assert (await place.publish(2, sign_key=other, trust_keys=public)).generation == 2
    follower = place.follower(trust_keys=[public, other_public])
    assert (await settle(follower.check())).generation == 2
    await settle(follower.close())
    with pytest.raises(nuthatch.ArgumentError, match=r"a\.pub: expected an Ed25519 private key"):
        await place.publish(3, sign_key=public)


async def test_errors_have_their_classes(place: Place, tmp_path: Path) -> None:
    file, module = place.build(1), place.module
    with pytest.raises(nuthatch.NotFoundError, match="publish one first") as nothing:
        await settle(module.generations(tmp_path / "none"))
    assert nothing.value.code == "nothing-published"
    with pytest.raises(nuthatch.NotFoundError, match=r"missing\.nut") as missing:
        await settle(module.publish(tmp_path / "missing.nut", tmp_path / "shared"))
    assert missing.value.code == "io"
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "damaged.nut").write_bytes(damaged[: len(damaged) // 2])
    with pytest.raises(nuthatch.DamagedError) as damage:
        await settle(module.publish(tmp_path / "damaged.nut", tmp_path / "shared"))
    assert damage.value.path == str(tmp_path / "damaged.nut")
    with pytest.raises(nuthatch.NotFoundError):
        await settle(module.roll_back(tmp_path / "shared", 1))
    await place.publish(1)
    with pytest.raises(nuthatch.NotFoundError, match="there is no generation 7; there are: 1"):
        await settle(module.roll_back(tmp_path / "shared", 7))
    with pytest.raises(nuthatch.ArgumentError, match=r"bandwidth: .* above 0"):
        place.follower(bandwidth=0)
    with pytest.raises(nuthatch.ArgumentError):
        await settle(module.publish(file, "ftp://host/path"))


async def test_a_manifest_that_is_damaged_or_older_changes_nothing(place: Place) -> None:
    await place.publish(1)
    manifest = place.path / "shared/manifest.json"
    old = manifest.read_bytes()
    await place.publish(2)
    follower = place.follower()
    await settle(follower.check())
    manifest.write_bytes(b"{}\n")
    with pytest.raises(nuthatch.DamagedError, match=r"manifest\.json"):
        await settle(follower.check())
    manifest.write_bytes(old)
    with pytest.raises(nuthatch.ChangedError) as older:
        await settle(follower.check())
    assert older.value.code == "older-manifest"
    assert (follower.generation, place.version()) == (2, 2)
    await settle(follower.close())


async def test_an_object_with_other_bytes_is_refused(place: Place) -> None:
    await place.publish(1)
    (stored,) = (place.path / "shared/objects").iterdir()
    stored.write_bytes(b"x" * stored.stat().st_size)
    follower = place.follower()
    with pytest.raises(nuthatch.DamagedError) as error:
        await settle(follower.check())
    assert (error.value.code, follower.path) == ("contents", None)
    await settle(follower.close())


async def test_one_follower_uses_a_folder_until_it_is_closed(place: Place) -> None:
    await place.publish(1)
    follower = place.follower()
    with pytest.raises(nuthatch.BusyError):
        place.follower()
    await settle(follower.close())
    await settle(follower.close())
    with pytest.raises(nuthatch.ClosedError):
        await settle(follower.check())
    second = place.follower()
    assert (await settle(second.check())).generation == 1
    await settle(second.close())


def can_check_in_child(follower: Any) -> bool:
    """Returns whether a child made by `fork` can use a follower."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            follower.check()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


async def test_a_child_of_the_process_cannot_use_a_follower(tmp_path: Path) -> None:
    place = Place(tmp_path, delivery)
    await place.publish(1)
    with place.follower() as follower:
        assert not can_check_in_child(follower)
        assert follower.check().generation == 1


@pytest.fixture
def mirror(tmp_path: Path) -> Any:
    """Serves the files of a destination over HTTP."""
    with serving() as origin:

        def copy() -> Origin:
            for file in (tmp_path / "shared").rglob("*"):
                if file.is_file():
                    path = file.relative_to(tmp_path / "shared")
                    origin.put(f"/{path}", file.read_bytes())
            return origin

        yield copy


async def test_a_destination_is_followed_over_http(
    place: Place, mirror: Callable[[], Origin]
) -> None:
    await place.publish(1)
    origin = mirror()
    follower = place.module.Follower(origin.address, place.path / "there", bandwidth=1 << 30)
    assert (await settle(follower.check())).generation == 1
    with pytest.raises(nuthatch.UnavailableError, match="an HTTP server is for followers"):
        await settle(place.module.publish(place.path / "users.nut", origin.address))
    await settle(follower.close())


async def test_a_cancelled_check_continues_later(tmp_path: Path) -> None:
    place = Place(tmp_path, nuthatch.aio)
    await place.publish(1)
    # A byte in a second: the check cannot end before it is cancelled.
    follower = nuthatch.aio.Follower(tmp_path / "shared", tmp_path / "there", bandwidth=1)
    waiting: Awaitable[object] = follower.check()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting, 0.3)
    await follower.close()
    assert not (tmp_path / "there/users.nut").exists()
    async with nuthatch.aio.Follower(tmp_path / "shared", tmp_path / "there") as second:
        swapped = await second.check()
        assert swapped is not None
        assert place.version() == 1
