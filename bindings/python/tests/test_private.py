"""Private objects: headers are sent with each request to their host, and to no other host."""

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

import nuthatch
from nuthatch.fs import NuthatchCache
from origin import Origin, serving

DATA = os.urandom((3 << 20) + 12_345)
SECRET = "s3cr3t-t0ken"
HEADERS = {"Authorization": f"Bearer {SECRET}", "X-Key": SECRET}


@pytest.fixture
def origin(origin: Origin) -> Origin:
    origin.put("/data", DATA)
    origin.required_headers = dict(HEADERS)
    return origin


def folder_has_secret(folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return any(SECRET.encode() in path.read_bytes() for path in files)


def shown_of(error: BaseException | None) -> str:
    """Returns the text and attributes of an error and of all its causes."""
    found = ""
    while error:
        found += f"{error} {error!r} {error.args!r} {vars(error)!r}\n"
        error = error.__cause__ or error.__context__
    return found


def in_child(body: Callable[[], object]) -> bool:
    """Runs a function in a child made by `fork`, and returns whether it succeeded."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def test_an_origin_is_shown_headers_with_each_request(origin: Origin, tmp_path: Path) -> None:
    url, headers = origin.address + "/data", dict(HEADERS)
    with nuthatch.open_url(url, headers=headers, cache=tmp_path / "cache") as file:
        # The headers were copied by the call.
        headers.clear()
        assert file.read() == DATA
    assert len(origin.request_headers) > 1
    # Each open makes a request, regardless of the contents of the cache.
    with pytest.raises(nuthatch.AccessError, match="status 401"):
        nuthatch.open_url(url, headers=headers, cache=tmp_path / "cache")
    with pytest.raises(nuthatch.AccessError, match="status 401"):
        nuthatch.open_url(url, cache=tmp_path / "cache")


def test_another_host_is_shown_no_headers(origin: Origin, tmp_path: Path) -> None:
    with serving() as other:
        origin.redirects["/moved"] = other.put("/elsewhere", DATA)
        url = origin.address + "/moved"
        with nuthatch.open_url(url, headers=HEADERS, cache=tmp_path / "cache") as file:
            assert file.read() == DATA
        assert len(other.request_headers) > 1
        assert len(origin.request_headers) == len(other.request_headers)
        for shown in other.request_headers:
            assert SECRET not in str(shown)
            assert not {"authorization", "x-key"} & {name.lower() for name in shown}


def test_headers_are_shown_again_in_a_child_made_by_fork(origin: Origin, tmp_path: Path) -> None:
    url = origin.address + "/data"
    file = nuthatch.open_url(url, headers=HEADERS, cache=tmp_path / "cache")
    asked = len(origin.request_headers)

    def read() -> None:
        assert file.read() == DATA

    assert in_child(read)
    # One request for the version, and at least one for bytes.
    assert len(origin.request_headers) >= asked + 2
    file.close()


def test_headers_are_in_nothing_that_is_shown_or_kept(origin: Origin, tmp_path: Path) -> None:
    url, cache = origin.address + "/data", tmp_path / "cache"
    file = nuthatch.open_url(url, headers=HEADERS, cache=cache)
    opened = vars(file.raw)["_opened"]
    assert file.read(10) == DATA[:10]
    assert SECRET not in f"{file!r} {file.raw!r} {opened!r}"
    assert not folder_has_secret(cache)

    def open_at(url: str) -> io.BufferedReader:
        return nuthatch.open_url(url, headers=HEADERS, cache=cache)

    origin.put("/data", DATA[::-1], '"v2"')
    failing: list[tuple[type[Exception], Callable[[], object]]] = [
        (TypeError, lambda: pickle.dumps(file)),
        (TypeError, lambda: pickle.dumps(file.raw)),
        (nuthatch.ChangedError, lambda: opened.read_at(2 << 20, 10)),
        (nuthatch.NotFoundError, lambda: open_at(origin.address + "/missing")),
        (nuthatch.ArgumentError, lambda: open_at("gopher://host/file")),
        (nuthatch.AccessError, lambda: open_at(url)),
    ]
    for kind, operation in failing:
        if kind is nuthatch.AccessError:
            origin.required_headers["X-Key"] = "another"
        with pytest.raises(kind) as error:
            operation()
        assert SECRET not in shown_of(error.value)
    file.close()


NAME, VALUE = "expected the name of a header", "expected a value without control characters"


@pytest.mark.parametrize(
    ("headers", "kind", "expected"),
    [
        ({"A": "b", "": SECRET}, ValueError, f"headers: number 2: {NAME}"),
        ({f"Bearer {SECRET}": "x"}, ValueError, f"headers: number 1: {NAME}"),
        ({f"Authorization: {SECRET}": "x"}, ValueError, f"headers: number 1: {NAME}"),
        ({f"\ud800{SECRET}": "x"}, ValueError, f"headers: number 1: {NAME}"),
        ({"X-Key": f"{SECRET}\r\nX-Other: x"}, ValueError, f"headers: number 1: {VALUE}"),
        ({"X-Key": f"{SECRET}\0"}, ValueError, f"headers: number 1: {VALUE}"),
        ({"X-Key": f"{SECRET}\ud800"}, ValueError, f"headers: number 1: {VALUE}"),
        ({"X-Key": SECRET.encode()}, TypeError, "headers: expected text, found bytes"),
        ({SECRET.encode(): "x"}, TypeError, "headers: expected text, found bytes"),
        ([("X-Key", SECRET)], TypeError, "headers"),
        (f"X-Key: {SECRET}", TypeError, "headers"),
    ],
)
def test_odd_headers_are_refused_and_not_shown(
    headers: Any, kind: type[Exception], expected: str, origin: Origin, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=expected) as error:
        nuthatch.open_url(origin.address + "/data", headers=headers, cache=tmp_path / "cache")
    assert SECRET not in shown_of(error.value)
    assert not isinstance(error.value, UnicodeError)
    assert not origin.request_headers


def test_space_around_a_value_is_no_part_of_it(origin: Origin, tmp_path: Path) -> None:
    # A token that is read from a file often ends with a newline.
    headers = {name: value + "\n" for name, value in HEADERS.items()}
    url = origin.address + "/data"
    with nuthatch.open_url(url, headers=headers, cache=tmp_path / "cache") as file:
        assert file.read(10) == DATA[:10]


def test_users_are_found_in_netrc(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.required_headers = {"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password password\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with nuthatch.open_url(origin.address + "/data", cache=tmp_path / "cache") as file:
        assert file.read(10) == DATA[:10]


@pytest.fixture
def fs(tmp_path: Path) -> NuthatchCache:
    return NuthatchCache("http", target_options={"headers": HEADERS}, cache=tmp_path / "cache")


def test_the_target_of_a_filesystem_shows_headers(
    fs: NuthatchCache, origin: Origin, tmp_path: Path
) -> None:
    url = origin.address + "/data"
    assert fs.cat_file(url) == DATA
    file = fs.open(url)
    assert SECRET not in f"{fs!r} {fs} {file!r} {file}"
    assert not folder_has_secret(tmp_path / "cache")
    bare = NuthatchCache("http", cache=tmp_path / "cache")
    with pytest.raises(PermissionError, match="access denied: status 401"):
        bare.cat_file(url)
    origin.required_headers["X-Key"] = "another"
    with pytest.raises(PermissionError, match="access denied: status 401") as error:
        fs.cat_file(url)
    assert SECRET not in shown_of(error.value)


def test_headers_of_a_filesystem_are_shown_again_after_pickling_and_fork(
    fs: NuthatchCache, origin: Origin
) -> None:
    url = origin.address + "/data"
    with fs.open(url) as file:
        pickled = pickle.dumps((fs, file))

        def read() -> None:
            assert file.read() == DATA

        assert in_child(read)
    NuthatchCache.clear_instance_cache()
    origin.put("/other", DATA[::-1])
    again, reopened = pickle.loads(pickled)
    assert again.cat_file(origin.address + "/other") == DATA[::-1]
    assert reopened.read() == DATA


def test_headers_are_options_of_a_chain_of_urls(origin: Origin, tmp_path: Path) -> None:
    url = origin.put("/table.csv", b"number\n1\n2\n")
    options = {"http": {"headers": HEADERS}, "nuthatch": {"cache": str(tmp_path / "cache")}}
    table = pandas.read_csv(f"nuthatch::{url}", storage_options=options)
    assert table["number"].tolist() == [1, 2]
