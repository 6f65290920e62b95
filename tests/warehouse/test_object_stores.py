"""Warehouses in an object store: what is different there, and requests that go wrong."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.console import SilentConsole
from corollary.database.database import Database
from corollary.database.upkeep.retention import Retention, collect
from corollary.errors import WarehouseError
from corollary.warehouse import warehouse as warehouses
from corollary.warehouse.files import object_path, unfinished_uploads
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place, files_below, is_object_url, place_of
from corollary.warehouse.files.unfinished_uploads import abort_uploads
from corollary.warehouse.warehouse_catalog import parse_location
from support.maintained_database import closure, insert, opened, pairs, reopened
from support.postgresql_server import Server
from support.processes.object_store_server import BUCKET, KEY, SECRET, ObjectStoreServer
from support.warehouse_scenarios import loose_files, store_of

pytestmark = pytest.mark.integration


@pytest.fixture
def place(server: Server, object_store_server: ObjectStoreServer) -> str:
    """A warehouse in an object store."""
    return server.place(object_store_server.place())


@pytest.fixture
def folder(object_store_server: ObjectStoreServer) -> ObjectPath:
    """A place in the object store."""
    found = place_of(object_store_server.place())
    assert isinstance(found, ObjectPath)
    return found


# ------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "store", "key"),
    [
        ("s3://bucket", "s3://bucket", ""),
        ("s3://bucket/", "s3://bucket", ""),
        ("S3://bucket/a/b/", "s3://bucket", "a/b"),
        ("gs://bucket/a//b", "gs://bucket", "a/b"),
        (
            "abfss://box@account.dfs.core.windows.net/a",
            "abfss://box@account.dfs.core.windows.net",
            "a",
        ),
    ],
)
def test_names_of_objects(name: str, store: str, key: str) -> None:
    assert place_of(name) == ObjectPath(store, key)


@pytest.mark.parametrize(
    "name",
    [
        "s3://key:hidden@bucket/a",
        "s3://hidden@bucket/a",
        "s3://bucket:9000/a",
        "s3://bucket/a?secret=hidden",
        "s3:///a",
        "https://host/a?token=hidden",
        "ftp://me:hidden@host/a",
    ],
)
def test_what_is_no_name_of_objects(name: str) -> None:
    with pytest.raises(WarehouseError, match="C1551") as caught:
        place_of(name)
    if "=" in name or ":hidden" in name:
        assert "hidden" not in str(caught.value)


def test_names_are_put_together_as_those_of_files() -> None:
    root = place_of("s3://bucket/house")
    path = root / "data" / "1/0.parquet"
    assert str(path) == "s3://bucket/house/data/1/0.parquet"
    assert (path.name, path.parent, path.with_name("x").name) == (
        "0.parquet",
        root / "data/1",
        "x",
    )
    assert isinstance(path, ObjectPath)
    assert path.is_relative_to(root)
    assert not (root / "../other").is_relative_to(root)
    assert not place_of("s3://bucket/house2").is_relative_to(root)
    assert pickle.loads(pickle.dumps(path)) == path
    assert not is_object_url("postgresql://h/n")


def test_a_catalog_cannot_be_in_an_object_store() -> None:
    with pytest.raises(WarehouseError, match="C0930") as caught:
        corollary.open("s3://bucket/house")
    assert "postgresql://user@host/name?data=s3://bucket/house" in str(caught.value)


# ------------------------------------------------------------------------------------------ objects


def test_an_object_is_like_a_file(folder: ObjectPath) -> None:
    path = folder / "a/b.txt"
    with pytest.raises(FileNotFoundError):
        path.read_bytes()
    assert not folder.exists()
    path.create(b"0123456789")
    assert path.read_bytes() == b"0123456789"
    assert [bytes(each) for each in path.read_ranges([1, 7], [3, 9])] == [b"12", b"78"]
    assert (path.is_file(), path.is_dir(), folder.is_dir()) == (True, False, True)
    assert path.stat().st_size == 10
    assert [each.name for each in folder.iterdir()] == ["a"]
    assert list(folder.glob("*/*.txt")) == [path]
    assert [each[:2] for each in files_below(folder)] == [("a/b.txt", 10)]
    with path.open() as file:
        file.seek(-3, 2)
        assert file.read() == b"789"
    path.unlink()
    assert not folder.exists()


def test_an_object_is_put_from_any_bytes(folder: ObjectPath) -> None:
    for data in (b"", b"abc", memoryview(b"abc"), pa.py_buffer(b"abc")):
        (folder / "any").write_bytes(data)
        assert (folder / "any").read_bytes() == bytes(data)


def test_an_object_is_put_once(folder: ObjectPath) -> None:
    """The same content again is a request that was repeated; another one is a mistake."""
    path = folder / "x"
    path.create(b"one")
    path.create(b"one")
    with pytest.raises(FileExistsError):
        path.create(b"two")
    assert path.read_bytes() == b"one"


def test_a_large_object_is_put_in_parts(
    folder: ObjectPath, object_store_server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_path, "ONE_REQUEST_MAX_BYTES", 2**20)
    monkeypatch.setattr(object_path, "PART_BYTES", 5 * 2**20)
    data = bytes(range(256)) * (6 * 2**12)
    (folder / "large").create(data)
    assert (folder / "large").read_bytes() == data
    found = object_store_server.client().head_object(Bucket=BUCKET, Key=f"{folder.key}/large")
    assert found["ETag"].endswith('-2"')  # as S3 marks what came in two parts


# --------------------------------------------------------------------------------------- warehouses


def root(db: Database) -> Place:
    return store_of(db).warehouse.root


def test_only_gc_deletes(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that fails leaves its objects: a request of it may still be on its way."""
    monkeypatch.setattr(warehouses, "INLINE_BYTES", 1)
    with opened(closure(), place=place) as db:
        insert(db, "edge", pairs("ab"))
        catalog = store_of(db).warehouse.catalog
        with monkeypatch.context() as patch:
            patch.setattr(
                catalog, "commit", lambda *_: (_ for _ in ()).throw(WarehouseError.damaged("x"))
            )
            with pytest.raises(WarehouseError):
                insert(db, "edge", pairs("bc"))
        assert loose_files(db)
        collect(store_of(db).warehouse, Retention())
        assert not loose_files(db)
        insert(db, "edge", pairs("bc"))
    with reopened("", place=place) as db:
        assert sorted(db.relation("reach").rows()) == pairs("ab ac bc")


@pytest.mark.smoke
def test_opening_and_committing_list_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouses, "INLINE_BYTES", 1)
    with opened(closure(), place=place) as db:
        insert(db, "edge", pairs("ab"))
        store_of(db).fold(db._state)

    def listed(*_: object) -> None:
        raise AssertionError("objects are listed")

    for name in ("entries", "iterdir", "glob"):
        monkeypatch.setattr(ObjectPath, name, listed)
    with reopened("", place=place) as db:
        insert(db, "edge", pairs("bc"))
        store_of(db).fold(db._state)
        assert sorted(db.at(2).relation("reach").rows()) == pairs("ab")
        assert sorted(db.relation("reach").rows()) == pairs("ab ac bc")


def test_objects_without_their_catalog(
    place: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warehouses, "INLINE_BYTES", 1)
    with opened(closure(), place=place) as db:
        insert(db, "edge", pairs("ab"))
    with pytest.raises(WarehouseError, match="C0933"):
        corollary.open(server.place(str(parse_location(place)[0])))


class Notes(SilentConsole):
    """What is told."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


def test_uploads_that_nobody_will_finish(
    place: str, object_store_server: ObjectStoreServer
) -> None:
    """No listing shows them; `gc` aborts those that are as old as dead writers, and only ours."""
    client, notes = object_store_server.client(), Notes()
    with opened(closure(), place=place) as db:
        key = f"{store_of(db).warehouse.root.key}/data/some where/x+y.parquet"  # type: ignore[union-attr]
        mine, other = (
            client.create_multipart_upload(Bucket=BUCKET, Key=name)["UploadId"]
            for name in (key, f"other/{key}")
        )
        client.upload_part(Bucket=BUCKET, Key=key, UploadId=mine, PartNumber=1, Body=b"half")
        # The imitated store says of each that it was started in 2010.
        root = store_of(db).warehouse.root
        assert isinstance(root, ObjectPath)
        assert abort_uploads(root, datetime(2010, 1, 1, tzinfo=UTC).timestamp()) == 0
        assert unfinished(client) >= {mine, other}
        collect(store_of(db).warehouse, Retention(), console=notes)
        assert unfinished(client) & {mine, other} == {other}
        assert notes.notes == ["1 unfinished upload aborted"]
    client.abort_multipart_upload(Bucket=BUCKET, Key=f"other/{key}", UploadId=other)


def unfinished(client: Any) -> set[str]:
    found = client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ())
    return {each["UploadId"] for each in found}


def test_a_signature_is_that_of_another_library(
    object_store_server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The imitated store does not compare signatures, so boto's is taken for the right one."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    bucket = unfinished_uploads._Bucket("bucket")
    query = "prefix=a%2Fb%20c&uploads="
    ours = bucket._signed("GET", "host:81", "/bucket/x%20y", query)
    request = AWSRequest("GET", f"http://host:81/bucket/x%20y?{query}", headers={})
    request.context["timestamp"] = ours["x-amz-date"]
    request.headers["x-amz-content-sha256"] = ours["x-amz-content-sha256"]
    signer = S3SigV4Auth(Credentials(KEY, SECRET, "token"), "s3", "us-east-1")
    request.headers["X-Amz-Date"] = ours["x-amz-date"]
    request.headers["X-Amz-Security-Token"] = "token"
    signed = signer.signature(
        signer.string_to_sign(request, signer.canonical_request(request)), request
    )
    assert ours["Authorization"].endswith(f"Signature={signed}")


def test_a_stream_needs_another_place_for_its_checkpoint(place: str) -> None:
    from corollary.errors import InputError
    from corollary.streaming.stream import default_checkpoint

    with opened(closure(), place=place) as db, pytest.raises(InputError, match="C1552"):
        default_checkpoint(db, "edge")


def test_no_bucket(server: Server, object_store_server: ObjectStoreServer, tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="no such bucket"):
        corollary.open(server.place("s3://no-such-bucket/x"))
