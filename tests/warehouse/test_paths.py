"""File names of directives stay under the root."""

import os
import socket
from pathlib import Path

import pytest

from corollary.errors import InputError
from corollary.warehouse.files.paths import resolve


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = tmp_path / "root"
    (top / "facts").mkdir(parents=True)
    (top / "facts" / "edge.facts").write_text("1\t2\n")
    (tmp_path / "secret").write_text("s")
    return top


def refusal(root: Path, name: str) -> str:
    with pytest.raises(InputError) as caught:
        resolve(root, name)
    (finding,) = caught.value.diagnostics
    assert finding.code == "C0805"
    return finding.message


@pytest.mark.parametrize("name", ["facts/edge.facts", "facts/../facts/edge.facts", "./new.csv"])
def test_names_under_the_root(root: Path, name: str) -> None:
    assert resolve(root, name) == (root / name).resolve()


def test_absolute_name_inside(root: Path) -> None:
    assert resolve(root, str(root / "facts" / "edge.facts")) == root / "facts" / "edge.facts"


def test_relative_to_the_directory_of_facts(root: Path) -> None:
    assert resolve(root, "edge.facts", base=root / "facts") == root / "facts" / "edge.facts"
    assert resolve(root, "../x.csv", base=root / "facts") == root / "x.csv"


@pytest.mark.parametrize("name", ["../secret", "facts/../../secret", "/etc/passwd", "..", "/"])
def test_names_outside(root: Path, name: str) -> None:
    assert refusal(root, name) == f"`{name}` leads outside the root `{root}`"


def test_a_sibling_whose_name_starts_alike_is_outside(root: Path) -> None:
    assert "outside" in refusal(root, "../root2/x")


def test_links(root: Path) -> None:
    (root / "inside").symlink_to(root / "facts" / "edge.facts")
    (root / "outside").symlink_to(root.parent / "secret")
    (root / "dangling").symlink_to(root.parent / "not there")
    (root / "directory").symlink_to(root.parent)
    (root / "loop").symlink_to(root / "loop")
    assert resolve(root, "inside") == root / "facts" / "edge.facts"
    assert "outside" in refusal(root, "outside")
    assert "outside" in refusal(root, "dangling")
    assert "outside" in refusal(root, "directory/secret")
    assert "outside" in refusal(root, "facts/../directory/secret")
    assert refusal(root, "loop").startswith("`loop` cannot be followed to a file")


def test_a_root_that_is_a_link(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    found = resolve(root.parent / "alias", "facts/edge.facts")
    assert found == root / "facts" / "edge.facts"


def test_things_that_are_no_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # names of sockets must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert refusal(root, "pipe") == "`pipe` is a device, pipe or socket, not a file"
        assert refusal(root, "socket") == "`socket` is a device, pipe or socket, not a file"
    assert refusal(root, "facts") == "`facts` is a directory, not a file"
    assert refusal(Path("/"), "/dev/null") == "`/dev/null` is a device, pipe or socket, not a file"


@pytest.mark.parametrize("name", ["http://x/y", "file:///etc/passwd", "s3a://b/k", "file:/etc/x"])
def test_urls(root: Path, name: str) -> None:
    assert refusal(root, name) == f"`{name}` is a URL, and only files are read and written"


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_no_names(root: Path, name: str) -> None:
    assert "is not a file name" in refusal(root, name)


def test_a_name_too_long(root: Path) -> None:
    assert "cannot be followed to a file" in refusal(root, "x" * 5000)
    assert "cannot be followed to a file" in refusal(root, "facts/edge.facts/below")
