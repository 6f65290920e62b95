"""Scripts that others wrote, of the page and of its tests: fetched from npm, or checked.

`make vendor` runs it after a change of `lock.toml`; `make lint` runs it with `--check`.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
FOLDERS = (
    REPOSITORY / "src" / "corollary" / "web" / "vendor",
    REPOSITORY / "tests" / "web" / "vendor",
)
LOCK = "lock.toml"


def packages(folder: Path) -> list[dict[str, Any]]:
    """Return the packages of the lock file of a folder."""
    found: list[dict[str, Any]] = tomllib.loads((folder / LOCK).read_text("utf-8"))["package"]
    return found


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the files that are in a folder."""
    expected = {
        name: file["sha256"]
        for package in packages(folder)
        for name, file in package["files"].items()
    }
    found = [
        f"{name}: there is no such file; `make vendor` fetches it"
        for name in expected
        if not (folder / name).is_file()
    ]
    for path in sorted(folder.iterdir()):
        if path.name == LOCK:
            continue
        if path.name not in expected:
            found.append(f"{path.name}: is not in {LOCK}")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected[path.name]:
            found.append(f"{path.name}: has another hash than in {LOCK}")
    found += [
        f"{package['name']}: its licence is missing"
        for package in packages(folder)
        if not any("LICENSE" in name for name in package["files"])
    ]
    return found


def fetch(package: dict[str, Any], folder: Path, temporary: Path) -> None:
    """Fetch a package, compare its hash, and copy its files into a folder."""
    wanted = f"{package['name']}@{package['version']}"
    command = ["npm", "pack", "--silent", "--pack-destination", str(temporary), wanted]
    packed = subprocess.run(command, check=True, capture_output=True, text=True)
    archive = temporary / packed.stdout.strip().splitlines()[-1]
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != package["integrity"]:
        sys.exit(f"{wanted} has another hash than in {LOCK}: sha512-{digest}")
    with tarfile.open(archive) as members:
        for name, file in package["files"].items():
            member = members.extractfile(f"package/{file['from']}")
            if member is None:
                sys.exit(f"{wanted} has no file {file['from']}")
            (folder / name).write_bytes(member.read())


def main() -> None:
    """Fetch, unless only a check is asked for; then check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fetch nothing")
    if not parser.parse_args().check:
        with tempfile.TemporaryDirectory() as temporary:
            for folder in FOLDERS:
                for package in packages(folder):
                    fetch(package, folder, Path(temporary))
    found = [each for folder in FOLDERS for each in problems(folder)]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
