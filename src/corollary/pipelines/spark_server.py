"""A Spark that answers plans over Spark Connect, in a process of its own.

It ends with the process that has started it: when its standard input ends. So neither side sees the
sessions of the other, and no Java is left behind.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from corollary.data_class import dataclass

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name of a variable
STOP_SECONDS = 20
"""How long a server may take to end by itself."""
SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


@dataclass(slots=True)
class SparkServer:
    """A server, and a session with it."""

    process: "subprocess.Popen[bytes]"
    session: Any
    address: str

    def stop(self) -> None:
        """End the session and the server, whatever it computes."""
        try:
            self.session.stop()
        finally:
            _end(self.process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a server, with its Java: both are in the session that it leads."""
    with process:  # which closes its pipes: then it ends by itself
        assert process.stdin is not None
        process.stdin.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def start_server(folder: Path) -> SparkServer:
    """Start a server on a free port of this machine; paths are relative to a folder.

    Raises:
        RuntimeError: it ends at once; its own messages say why.
    """
    from pyspark.sql.connect.session import SparkSession

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = os.environ.setdefault(TOKEN, secrets.token_hex(16))
    process = subprocess.Popen(  # noqa: S603 - the command is ours
        [sys.executable, "-m", __name__, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env={"PYSPARK_PYTHON": sys.executable, **os.environ, TOKEN: token},
        start_new_session=True,  # Ctrl-C is for us, who end it
    )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise RuntimeError(f"Spark has ended with {process.wait()}")
        address = f"sc://localhost:{port}"
        return SparkServer(process, SparkSession.builder.remote(address).create(), address)
    except BaseException:
        _end(process)
        raise


def serve(port: str) -> None:
    """Answer plans until the standard input ends."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("corollary pipelines")
    mine = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.authenticate.token": os.environ[TOKEN],
    }
    for key, value in {**SETTINGS, **mine}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    print("ready", flush=True)  # noqa: T201 - for the process that waits for it
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    serve(sys.argv[1])
