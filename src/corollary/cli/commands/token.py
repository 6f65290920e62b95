"""`corollary token`: who may ask a server."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.databases import open_catalog
from corollary.cli.options import FormatOptions
from corollary.cli.parameters import POSITIVE, family, warehouse
from corollary.cli.report.tables import table

if TYPE_CHECKING:
    from corollary.console import TerminalConsole
    from corollary.serve.tokens import Token
    from corollary.warehouse.warehouse_catalog import WarehouseCatalog

DEFAULT_PORT = 8765

name = click.argument("name")


@click.group()
def command() -> None:
    """Tokens: who may ask a server of a warehouse, and what.

    A token is a secret that a client sends with every request, and the password of PostgreSQL
    clients; the warehouse keeps only a hash of it. Its name is that of a reader for `grant`.

    \b
      corollary token add warehouse alice --role read
      corollary token list warehouse
      corollary token revoke warehouse alice
    """


@click.command()
@warehouse
@name
@click.option(
    "--role",
    type=click.Choice(["read", "write", "admin"]),
    required=True,
    help="read: what is granted to NAME; write: read all, and apply changes; admin: everything.",
)
@click.option("--days", type=POSITIVE, help="The days after which the token ends.")
@family("output", FormatOptions)
def add(warehouse: str, name: str, role: str, days: int | None, output: FormatOptions) -> None:
    """Make a token and print it, this one time.

    \b
      corollary token add warehouse alice --role read --days 90
      TOKEN=$(corollary token add warehouse robot --role write)
      curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8765/v1/relations
    """
    with output.reporting() as console, open_catalog(warehouse) as opened:
        from corollary.database.access.principals import AccessRole
        from corollary.serve.tokens import TokenStore

        tokens = TokenStore(opened.catalog)
        secret = tokens.add(name, AccessRole(role), days)
        made = next(each for each in tokens.list() if each.principal.name == name)
        output.show(lambda: {**_as_json(made), "token": secret}, [secret])
        _note(console, opened, made, warehouse)


def _note(
    console: "TerminalConsole", opened: "WarehouseCatalog", made: "Token", warehouse: str
) -> None:
    who = made.principal
    until = "" if made.expires is None else f" until {_ends(made)}"
    console.note(f"token of {who.name} ({who.role}){until}; it is not shown again")
    if who.role == "read":
        from corollary.warehouse.catalog.grants import StoredGrants

        if not StoredGrants(opened.catalog).granted_to(who.name):
            console.note(
                f"{who.name} may see nothing yet: corollary grant {warehouse} {who.name} RELATION"
            )


@click.command(name="list")
@warehouse
@family("output", FormatOptions)
def list_tokens(warehouse: str, output: FormatOptions) -> None:
    """List the tokens of a warehouse: names, roles, when they end; never the secrets.

    \b
      corollary token list warehouse
    """
    with output.reporting(), open_catalog(warehouse) as opened:
        from corollary.serve.tokens import TokenStore

        tokens = TokenStore(opened.catalog).list()
        output.show(lambda: {"tokens": [_as_json(each) for each in tokens]}, _lines(tokens))


@click.command()
@warehouse
@name
@family("output", FormatOptions)
def revoke(warehouse: str, name: str, output: FormatOptions) -> None:
    """End a token, and the sessions of browsers that it has opened.

    A running server refuses it within a second.

    \b
      corollary token revoke warehouse alice
    """
    with output.reporting(), open_catalog(warehouse) as opened:
        from corollary.serve.tokens import TokenStore

        gone = TokenStore(opened.catalog).revoke(name)
        output.show(lambda: {"revoked": _as_json(gone)}, [f"revoked the token of {name}"])


@click.command()
@warehouse
@click.option(
    "--url",
    default=f"http://127.0.0.1:{DEFAULT_PORT}",
    show_default=True,
    help="Where the server of the warehouse is.",
)
@family("output", FormatOptions)
def link(warehouse: str, url: str, output: FormatOptions) -> None:
    """Print an address that opens the page of a running server, once, within five minutes.

    It is like the one that `corollary serve` prints when it starts, for whoever can write the
    catalog of the warehouse: signed in as admin.

    \b
      corollary token link warehouse
    """
    with output.reporting(), open_catalog(warehouse) as opened:
        from corollary.database.access.principals import OWNER
        from corollary.serve.tokens import TokenStore

        address = f"{url.rstrip('/')}/#key={TokenStore(opened.catalog).new_key(OWNER)}"
        output.show(lambda: {"url": address}, [address])


def _as_json(token: "Token") -> dict[str, Any]:
    return {
        "name": token.principal.name,
        "role": str(token.principal.role),
        "created": _time(token.created),
        "expires": _ends(token),
    }


def _ends(token: "Token") -> str | None:
    return None if token.expires is None else _time(token.expires)


def _lines(tokens: "list[Token]") -> Iterator[str]:
    rows = [_as_json(each) | {"expires": _ends(each) or "never"} for each in tokens]
    if rows:
        yield from table(("name", "role", "created", "ends"), [[*each.values()] for each in rows])
    else:
        yield "no tokens"


def _time(time: datetime) -> str:
    from corollary.core.types import TIMESTAMP
    from corollary.core.values import format_value

    return format_value(time.replace(microsecond=0), TIMESTAMP)


command.add_command(add, "add")
command.add_command(list_tokens, "list")
command.add_command(revoke, "revoke")
command.add_command(link, "link")
