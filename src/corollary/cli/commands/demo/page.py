"""What to look at on the page, and the command that opens it."""

import os
import shutil
import sys
from pathlib import Path

import click

from corollary.cli.commands.demo.steps import say

SIGHTS = (
    ("Map", "what is computed from what; a commit runs up its floors"),
    ("Relations", "dark, then any home, then `why`: the proof that no cable leads there"),
    ("the line below", "drag it to commit 2: everything is as the digger left it"),
    ("Console", 'feeds("r4", y), region(y, "r3")'),
    ("Commits", "commit 4: what it did, in which order, and where its time went"),
    ("Alerts", "homes cut off from r5: 2400; `why` says which cable it was"),
    ("Change", 'insert cable("r5", "r5.t20"), as a dry run first: 2,400 homes have light again'),
)


def show_page(warehouse: Path, is_kept: bool) -> None:
    """Print the command that opens the page, and what is to be seen there."""
    say("\nThe page")
    options = f"serve {warehouse}" if is_kept else "demo --serve"
    click.echo(f"    {_program()} {options}")
    say("opens it. What to look at:")
    for line in sight_lines():
        click.echo(f"    {line}")


def sight_lines() -> list[str]:
    """Return what to look at, a line each.

    >>> sight_lines()[0]
    'Map             what is computed from what; a commit runs up its floors'
    """
    width = max(len(place) for place, _ in SIGHTS)
    return [f"{place:<{width}}  {text}" for place, text in SIGHTS]


def _program() -> str:
    """Return how this program is called here."""
    own = Path(sys.argv[0])
    found = shutil.which("corollary")
    if own.name != "corollary" or (found and Path(found).resolve() == own.resolve()):
        return "corollary"
    return os.path.relpath(own)
