"""`corollary`: the group of commands, loaded one by one so that `--help` is quick."""

import importlib
from typing import Any

import click

from corollary import __version__

COMMANDS = {
    "run": "Evaluate a program once, or keep a warehouse up to date with it.",
    "watch": "Keep a warehouse up to date continuously, with streams.",
    "apply": "Change a warehouse: one transaction, all or nothing.",
    "query": "Answer one goal, computing only what it asks for.",
    "log": "List the commits of a warehouse, newest first.",
    "changes": "Print what commits have changed, row by row: the audit feed.",
    "export": "Write a relation of a warehouse to a file.",
    "check": "Say everything that is wrong or doubtful about a program.",
    "show": "Print a program in its normal form.",
    "graph": "Draw which relation is computed from which.",
    "explain": "Show how a program will be evaluated, or maintained.",
    "trace": "Show one propagation step by step, as the tables of the papers do.",
    "advise": "Find views that are worth storing, and rewrite queries to use them.",
    "grant": "Let a reader see relations of a warehouse.",
    "revoke": "Let a reader not see relations of a warehouse any more.",
    "grants": "List who may see what of a warehouse.",
    "status": "Say what a warehouse holds, and how it is.",
    "verify": "Compare everything that a warehouse says with everything else.",
    "gc": "Drop old history, dead writers, and files that nobody needs.",
    "backup": "Copy a warehouse while others use it.",
    "restore": "Make a warehouse of a backup.",
    "alter": "Add, rename or drop columns of a base relation, keeping the data.",
    "erase": "Take tuples out of the data and out of history.",
    "documents": "Match tree patterns against documents that streams write into.",
    "demo": "Run the bundled example from end to end.",
}


class LazyGroup(click.Group):
    """A group whose commands live in modules of their names, imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a first visit."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"corollary.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, with a hint where the name is only almost right."""
        from difflib import get_close_matches

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = get_close_matches(args[0], COMMANDS, 1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "COROLLARY"},
    epilog=(
        "Exit status: 0 ok, 1 error in the input, 2 wrong usage, 3 aborted by a constraint, 4 "
        "others committed first, 5 a limit was hit. Every option can also be set as "
        "COROLLARY_<COMMAND>_<OPTION> in the environment."
    ),
)
@click.version_option(__version__, prog_name="corollary")
def group() -> None:
    """Corollary keeps derived data true while the data under it changes.

    Views are written as Datalog rules; a warehouse keeps them true from run to run. Begin with:

    \b
      corollary demo                                    see it at work
      corollary check network.dl                        what is wrong with a program
      corollary run network.dl -F facts -D out          evaluate it once
      corollary run network.dl -F facts --warehouse wh  keep it; run again when something changed
      corollary watch network.dl -F facts --warehouse wh  the same, whenever something changes
      corollary apply wh --insert direct_link=new.csv   change it by hand
      corollary query wh 'link("a", y)'                 ask it
      corollary trace network.dl -F facts --remove 'direct_link("a", "b")'
    """


def main(**extra: Any) -> None:
    """Run the command line."""
    group(**extra)
