"""`corollary serve`: a warehouse that is kept open for many clients."""

import os
import resource
import sys
from contextlib import ExitStack, closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from corollary.cli.databases import open_catalog
from corollary.cli.options import EngineOptions, FormatOptions
from corollary.cli.parameters import (
    COUNT,
    FLAG,
    byte_count,
    family,
    functors,
    given_functors,
    option,
    warehouse,
)
from corollary.data_class import dataclass
from corollary.errors import InputError, redact_password

if TYPE_CHECKING:
    import socket

    from corollary.console import TerminalConsole
    from corollary.serve.http.settings import ServerSettings
    from corollary.serve.runner import ServerRun
    from corollary.serve.service import ServiceLimits
    from corollary.warehouse.warehouse_catalog import WarehouseCatalog

FILE = click.Path(path_type=Path, dir_okay=False)
PORT = click.IntRange(0, 65535)
PACKAGES = ("uvicorn", "starlette", "httptools", "jinja2")
OTHER_CONNECTIONS = 1000
"""How many connections there may be besides those of subscribers."""
OTHER_FILES = 100
"""How many files a server opens besides its connections."""


@dataclass(frozen=True)
class AddressOptions:
    """Where a server listens, and what stands before it."""

    host: Annotated[
        str, "The address to listen on.", option(default="127.0.0.1", show_default=True)
    ]
    port: Annotated[
        int,
        "The port of HTTP; 0 takes one that is free.",
        option(type=PORT, default=8765, show_default=True),
    ]
    pg_port: Annotated[
        int | None,
        "The port for PostgreSQL clients; 0 takes one that is free. Default: none.",
        option(type=PORT),
    ]
    tls_cert: Annotated[
        Path | None, "The certificate of the server, for TLS: a PEM file.", option(type=FILE)
    ]
    tls_key: Annotated[Path | None, "The key of the certificate: a PEM file.", option(type=FILE)]
    behind_proxy: Annotated[
        bool, "A proxy speaks TLS, and hands requests on with `X-Forwarded-Proto`.", FLAG
    ]
    allow_host: Annotated[
        tuple[str, ...],
        "Answer requests to this name only. May be repeated.",
        option(metavar="NAME", multiple=True),
    ]
    allow_agent_writes: Annotated[
        bool, "Let agents, who come by /mcp, change data if their tokens may.", FLAG
    ]

    @property
    def certificate(self) -> tuple[Path, Path] | None:
        """The files for TLS."""
        if self.tls_cert is None and self.tls_key is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise click.UsageError("--tls-cert and --tls-key belong together.")
        return self.tls_cert, self.tls_key

    def check(self) -> None:
        """Refuse to send tokens over a network that others can read.

        Raises:
            InputError: others could.
        """
        from corollary.serve.http.settings import is_loopback

        if not (is_loopback(self.host) or self.behind_proxy or self.certificate):
            raise InputError.of(
                "C1636",
                f"On {self.host}, tokens would travel where others can read them.",
                None,
                "give a certificate with `--tls-cert` and `--tls-key`, or put a proxy that speaks "
                "TLS before it and say `--behind-proxy`",
            )


@dataclass(frozen=True)
class ServiceOptions:
    """What a server may spend on a request."""

    limit_seconds: Annotated[
        float,
        "The time that a request may take.",
        option(type=click.FloatRange(min=0.1), default=10.0, show_default=True),
    ]
    limit_tuples: Annotated[
        int,
        "The tuples that a request may work on.",
        option(type=click.IntRange(min=1), default=1_000_000, show_default=True),
    ]
    limit_memory: Annotated[
        float,
        "The memory that a process may take for a request, beside the data that it holds.",
        option(
            metavar="SIZE",
            type=byte_count(1024, "is not an amount of memory; write 500M or 2G"),
            default="1G",
            show_default=True,
        ),
    ]
    limit_body: Annotated[
        float,
        "The size of a request.",
        option(
            metavar="SIZE",
            type=byte_count(1024, "is not a size; write 16M"),
            default="16M",
            show_default=True,
        ),
    ]
    limit_requests: Annotated[
        int,
        "The requests of one token that may be under way.",
        option(type=click.IntRange(min=1), default=16, show_default=True),
    ]
    limit_subscribers: Annotated[
        int,
        "The subscriptions that there may be at a time.",
        option(type=click.IntRange(min=1), default=1000, show_default=True),
    ]

    @property
    def limits(self) -> "ServiceLimits":
        """The bounds in the form that a service takes."""
        from corollary.serve.service import ServiceLimits

        return ServiceLimits(
            seconds=self.limit_seconds,
            tuples=self.limit_tuples,
            memory=int(self.limit_memory),
            requests_per_token=self.limit_requests,
            subscribers=self.limit_subscribers,
        )


@click.command()
@warehouse
@family("address", AddressOptions)
@click.option(
    "--readers",
    type=COUNT,
    help="Processes that read; 0 does everything in one. Default: one less than there are cores, "
    "at least 2.",
)
@family("engine", EngineOptions)
@click.option(
    "--allow-webhook",
    metavar="URL",
    multiple=True,
    envvar="COROLLARY_ALLOW_WEBHOOKS",
    help="Let alerts be posted to URLs that begin with this one. May be repeated.",
)
@family("bounds", ServiceOptions)
@click.option(
    "--publish",
    type=click.Choice(["commit", "1s", "manual"]),
    default="1s",
    show_default=True,
    help="When the tables of outputs are brought forward, after the answers to changes: with every "
    "commit, at most once a second, or only by `corollary run`.",
)
@click.option(
    "--log",
    type=click.Choice(["requests", "errors"]),
    help="What is logged on standard error, as JSON. Default: errors on a terminal, else requests.",
)
@functors
@family("output", FormatOptions)
def command(
    warehouse: str,
    address: AddressOptions,
    readers: int | None,
    engine: EngineOptions,
    allow_webhook: tuple[str, ...],
    bounds: ServiceOptions,
    publish: str,
    log: str | None,
    output: FormatOptions,
) -> None:
    """Keep a warehouse open for many clients: over HTTP, with a page for browsers.

    It prints an address that opens the page, signed in; it is valid once, for five minutes. For
    programs and other people, make tokens. `/openapi.json` describes the interface. Ctrl-C or
    SIGTERM stop the server after what is under way; the commands of this machine use it by
    themselves while it runs.

    \b
      corollary serve warehouse
      corollary token add warehouse alice --role read
      curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8765/v1/relations
      corollary serve warehouse --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    certificate = address.certificate
    with output.reporting() as console, ExitStack() as stack:
        _check_packages()
        address.check()
        opened = stack.enter_context(open_catalog(warehouse))
        from corollary.core.user_functors.loading import load_functors
        from corollary.serve.http.request_log import start_log
        from corollary.serve.http.server import listen_on
        from corollary.serve.runner import ServerRun, run_in_loop
        from corollary.serve.tokens import TokenStore
        from corollary.web.routes import routes

        directory = opened.root if isinstance(opened.root, Path) else None
        listening = stack.enter_context(closing(listen_on(address.host, address.port)))
        start_log(has_requests=log == "requests" or (log is None and not sys.stderr.isatty()))
        settings = _settings(opened, address, bounds, listening.getsockname()[1])
        run = ServerRun(
            warehouse=warehouse,
            settings=settings,
            limits=bounds.limits,
            options=replace(
                engine.options,
                webhooks=allow_webhook,
                publish=publish,
                functors=load_functors(given_functors()),
            ),
            readers=readers,
            tokens=TokenStore(opened.catalog),
            listening=listening,
            private=_private(stack, directory, console),
            directory=directory,
            certificate=certificate,
            pg_port=address.pg_port,
            page=lambda service: routes(service, settings.warehouse_name),
        )
        _open_more_files(settings.connections + OTHER_FILES, console)
        console.progress(f"opening {redact_password(warehouse)}")

        def announce(pg_port: int | None) -> None:
            console.done()
            _announce(run, pg_port, output)

        run_in_loop(lambda: run.serve(announce))


def _check_packages() -> None:
    for name in PACKAGES:
        if find_spec(name) is None:
            text = f"A server needs the package `{name}`, which is not installed."
            raise InputError.of("C1637", text, None, 'install `pip install "corollary[serve]"`')


def _open_more_files(count: int, console: "TerminalConsole") -> None:
    """Let this process open files and connections, as many as it may need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
        if most < count:
            console.note(f"{count:,} open files are needed, and `ulimit -Hn` allows {most:,}")


def _private(
    stack: ExitStack, directory: Path | None, console: "TerminalConsole"
) -> "socket.socket | None":
    """Return the socket of the owner; None where there can be none."""
    from corollary.serve.server_file import private_socket

    if directory is None:
        return None
    try:
        return stack.enter_context(private_socket(directory))
    except OSError as error:
        console.note(f"commands cannot use this server: {error.strerror or error}")
        return None


def _settings(
    opened: "WarehouseCatalog", address: AddressOptions, bounds: ServiceOptions, port: int
) -> "ServerSettings":
    from corollary.serve.http.settings import ServerSettings

    return ServerSettings(
        warehouse_name=opened.root.name or str(opened.root),
        host=address.host,
        port=port,
        has_tls=address.certificate is not None,
        is_behind_proxy=address.behind_proxy,
        allowed_hosts=tuple(each.lower() for each in address.allow_host),
        body_max_bytes=int(bounds.limit_body),
        connections=bounds.limit_subscribers + OTHER_CONNECTIONS,
        allows_agent_writes=address.allow_agent_writes,
    )


def _announce(run: "ServerRun", pg_port: int | None, output: FormatOptions) -> None:
    """Print where the server is, and what to do next."""
    from corollary.database.access.principals import OWNER

    url = run.settings.url
    page = f"{url}/#key={run.tokens.new_key(OWNER)}"
    place = redact_password(run.warehouse)
    lines = [
        f"serving {place} at {url}",
        "",
        f"  {page}",
        "      opens the page, signed in: once, within five minutes",
        f"  corollary token link {place} --url {url}",
        "      prints such an address again",
        f"  corollary token add {place} NAME --role read",
        "      makes a token, for a program or for somebody else",
        f'  curl -H "Authorization: Bearer $TOKEN" {url}/v1/relations',
        "      asks with it",
        *_pg_lines(run.settings, pg_port),
        "",
        "Ctrl-C stops the server",
    ]
    output.show(lambda: {"url": url, "page": page, "pg_port": pg_port, "pid": os.getpid()}, lines)
    sys.stdout.flush()


def _pg_lines(settings: "ServerSettings", port: int | None) -> list[str]:
    if port is None:
        return []
    name = settings.warehouse_name
    return [
        f"  PGPASSWORD=$TOKEN psql -h {settings.host} -p {port} -U NAME {name}",
        "      asks in SQL",
    ]
