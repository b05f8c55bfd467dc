"""Errors, whose codes are the same in all languages."""

import csv
import errno
import pickle
from pathlib import Path

import pytest

import nuthatch
from conftest import ROOT, Server
from nuthatch import errors


def codes(table: str) -> set[str]:
    with (ROOT / "testdata" / table).open(newline="") as rows:
        return {row["code"] for row in csv.DictReader(rows)}


def test_every_code_has_its_class_and_every_class_its_codes() -> None:
    known = codes("store/errors.csv") | codes("store/statuses.csv") | {"transport", "status"}
    known |= codes("chunks/errors.csv") | codes("errors.csv")
    # Codes of reads from origins.
    known |= {
        "address",
        "answer",
        "cache",
        "changed",
        "denied",
        "not-found",
        "offline",
        "setup",
        "unreachable",
    }
    # Codes of delivery and of jobs.
    known |= {
        "contents",
        "gates",
        "manifest",
        "nothing-published",
        "older-manifest",
        "populate",
        "signature",
        "store",
    }
    assert set(errors._BY_CODE) == known
    classes = {getattr(errors, name) for name in errors.__all__}
    assert set(errors._BY_CODE.values()) == classes


def test_errors_can_be_pickled() -> None:
    for error in (errors.from_code("full", "it is full", None), errors.ConditionError("no")):
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), back.code) == (type(error), str(error), error.code)


@pytest.mark.parametrize(
    ("code", "kind", "number"),
    [
        ("changed", OSError, errno.ESTALE),
        ("denied", PermissionError, errno.EACCES),
        ("not-found", FileNotFoundError, errno.ENOENT),
        ("unreachable", ConnectionError, errno.ENOTCONN),
    ],
)
def test_errors_of_files_are_those_of_the_system(
    code: str, kind: type[OSError], number: int
) -> None:
    # Regression test: `errno` was the message of one class, and missing in the others.
    with pytest.raises(kind, match="what went wrong") as error:
        raise errors.from_code(code, "what went wrong", None)
    for each in (error.value, pickle.loads(pickle.dumps(error.value))):
        assert isinstance(each, OSError)
        assert isinstance(each, nuthatch.Error)
        assert (each.errno, each.strerror, str(each)) == (number, "what went wrong", str(each))
        assert (each.code, each.args) == (code, ("what went wrong", code))
        assert f"{each!r}" == f"{type(each).__name__}('what went wrong', '{code}')"


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(nuthatch.Error) as error:
        nuthatch.open(tmp_path / "missing", create=False)
    assert error.value.code == "io"
    assert str(tmp_path / "missing") in str(error.value)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"something else " * 1000)
    with pytest.raises(nuthatch.DamagedError) as error:
        nuthatch.open(tmp_path)
    assert error.value.code == "not-a-store"


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="durability: expected sync, group or none, found"):
        nuthatch.open(tmp_path / "store", durability="often")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'sync'"):
        nuthatch.open(tmp_path / "store", sync=True)  # type: ignore[call-arg]
    with pytest.raises(nuthatch.ArgumentError, match="limit: expected from 64 KiB to 64 TiB"):
        nuthatch.open(tmp_path / "store", limit=1)


def test_a_full_store_says_so(tmp_path: Path) -> None:
    with nuthatch.open(tmp_path / "store", durability="none", limit=1 << 20) as store:
        with pytest.raises(nuthatch.FullError) as error:
            for n in range(1000):
                store.put(b"%d" % n, b"v" * 10_000)
        assert error.value.code == "full"
        assert store.get(b"0") == b"v" * 10_000


def test_addresses_are_checked_and_servers_that_are_gone_are_told() -> None:
    with pytest.raises(nuthatch.ArgumentError, match="expected grpc://host:port"):
        nuthatch.connect("localhost:1")
    with pytest.raises(nuthatch.UnavailableError) as error:
        nuthatch.connect("grpc://127.0.0.1:1", retries=0)
    assert error.value.code == "transport"
    reason = "could not connect: connection refused; is the server running?"
    assert str(error.value) == f"grpc://127.0.0.1:1: {reason}"


def test_a_path_without_a_store_is_told_with_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(nuthatch.Error, match='found nothing; "nuthatch store put"') as error:
        nuthatch.open(tmp_path / "none", create=False)
    assert error.value.code == "io"


def test_a_watch_without_kept_changes_names_the_setting(tmp_path: Path) -> None:
    with nuthatch.open(tmp_path / "store") as store:
        with pytest.raises(nuthatch.WatchError, match="`keep_changes`") as error:
            store.watch()
        assert error.value.code == "no-changes-kept"


# Certificate of an authority that has issued no certificate.
AUTHORITY = """\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIURs0cUOC56qMMGWknlxPYp0nf7a4wCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGYSB0ZXN0MCAXDTI2MTEyMzA2MDEyMloYDzIxMjYxMDMwMDYw
MTIyWjARMQ8wDQYDVQQDDAZhIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQaPjExk+AhKXs5zKGMM6/iuOz3wcvzK3S3VLQN/HrsgAXPo4Pc39YEKOuAjjNq
c9zAxhG9o1/OY308nGSDubYBo1MwUTAdBgNVHQ4EFgQUaCav0aNubGuoN5k4OF1r
fLg1liswHwYDVR0jBBgwFoAUaCav0aNubGuoN5k4OF1rfLg1liswDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiAVNgTZt6ELY7vqeHPFj+Z6kG+Ff0oZ
lBrsz5/gNc7W9wIhAKUFlAlwdfksMWcw7LQnXK+7uBKFRlYBXhaMxUyJ2sdG
-----END CERTIFICATE-----
"""


def test_certificates_come_from_the_system_or_from_files_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(nuthatch.ArgumentError, match=r"missing\.pem: expected a certificate chain"):
        nuthatch.connect("grpcs://127.0.0.1:1", ca=missing)
    with pytest.raises(nuthatch.ArgumentError, match="expected cert and key together"):
        nuthatch.connect("grpcs://127.0.0.1:1", cert=missing)
    # These variables replace the certificates of the system.
    monkeypatch.setenv("SSL_CERT_DIR", "")
    monkeypatch.setenv("SSL_CERT_FILE", str(missing))
    with pytest.raises(nuthatch.ArgumentError) as none:
        nuthatch.connect("grpcs://127.0.0.1:1", retries=0)
    expected = f"grpcs://127.0.0.1:1: {missing}: expected certificates, found none"
    assert str(none.value).startswith(expected)
    assert "install `ca-certificates`, or name a file with --tls-ca (`ca`)" in str(none.value)
    roots = tmp_path / "roots.pem"
    roots.write_text(AUTHORITY)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    with pytest.raises(nuthatch.UnavailableError, match="connection refused; is the server run"):
        nuthatch.connect("grpcs://127.0.0.1:1", retries=0)


def test_tables_that_are_missing_are_told(here: nuthatch.Store, server: Server) -> None:
    with nuthatch.connect(server.address) as remote:
        missing = remote.table("missing", create=False)
        with pytest.raises(nuthatch.ArgumentError) as error:
            missing.get(b"key")
        assert error.value.code == "no-table"
    with pytest.raises(nuthatch.ArgumentError) as error:
        here.table("missing", create=False)
    assert error.value.code == "no-table"


def test_tables_of_other_stores_are_refused(here: nuthatch.Store, tmp_path: Path) -> None:
    with (
        nuthatch.open(tmp_path / "other") as other,
        pytest.raises(nuthatch.ArgumentError) as error,
        here.read() as transaction,
    ):
        other.put(b"key", b"value")
        transaction.get(b"key", table=other)
    assert error.value.code == "table"


def test_tables_are_opened_before_transactions(here: nuthatch.Store) -> None:
    with here.write() as txn, pytest.raises(TypeError, match="table: expected a table"):
        txn.put(b"key", b"value", table="users")  # type: ignore[arg-type]
