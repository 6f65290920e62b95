"""`corollary`: the group of commands, each imported when it is used so that `--help` is quick."""

import atexit
import gc
import os
import sys
from pkgutil import resolve_name
from typing import Any

import click

from corollary.version import __version__


class _PandasRefusal:
    """Does not find pandas before Spark is there; all other packages are left to other finders.

    Where pandas is installed, pyarrow imports it at its first scalar or array, to recognise the
    objects of pandas that it may be given. That takes 0.4 s, and nobody gives it any here. It asks
    once, and takes no for an answer; code that asks for pandas by name, as Spark does, gets it.

    Not a `MetaPathFinder`: importing that takes longer than all that is done here.
    """

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def refuse_pandas() -> None:
    """Let this process import pandas with Spark only."""
    sys.meta_path.insert(0, _PandasRefusal())


COMMANDS = {
    "run": ("run", "Evaluate a program once, or keep a warehouse up to date with it."),
    "plan": (
        "plan",
        "Show what a change of program and sources will do to a warehouse, to approve it.",
    ),
    "branch": (
        "branch",
        "Make a warehouse that shares the files of another, to try things out.",
    ),
    "promote": (
        "promote",
        "Put the program of a branch into force in the warehouse that it came from.",
    ),
    "pipelines": (
        "pipelines",
        "Run a project of Spark Declarative Pipelines, unchanged and incremental.",
    ),
    "watch": ("watch", "Keep a warehouse up to date continuously, with streams."),
    "apply": ("apply", "Change a warehouse: one transaction, all or nothing."),
    "query": ("query", "Answer one goal, computing only what it asks for."),
    "sql": ("query:sql", "Answer one question in SQL."),
    "shell": ("shell", "Ask and change a warehouse line by line."),
    "why": ("why:why", "Prove a tuple: from which tuples, by which rules."),
    "why-not": ("why:why_not", "Say what a tuple lacks, and what would make it true."),
    "why-added": ("why:why_added", "Say which changes of a commit have added a tuple."),
    "why-removed": ("why:why_removed", "Say which changes of a commit have removed a tuple."),
    "what-if": ("why:what_if", "Try out the deletion of a base tuple, or its insertion."),
    "serve": ("serve", "Keep a warehouse open for many clients: over HTTP, with a page."),
    "log": ("log", "List the commits of a warehouse, newest first."),
    "changes": ("changes", "Print what commits have changed, row by row: the audit feed."),
    "export": (
        "export",
        "Write a relation of a warehouse to a file, or everything to a directory.",
    ),
    "import": ("export:import_command", "Make a warehouse of what `export --all` has written."),
    "check": ("check", "Report everything that is wrong or doubtful about a program."),
    "test": ("test", "Run tests of changes: given rows, a change, then rows and differences."),
    "show": ("show", "Print a program in its normal form."),
    "graph": ("graph", "Draw which relation is computed from which."),
    "explain": ("explain", "Show how a program will be evaluated, or maintained."),
    "trace": ("trace", "Show one propagation step by step, as the tables of the papers do."),
    "advise": (
        "advise.command",
        "Find views that are worth storing, and rewrite queries to use them.",
    ),
    "grant": ("upkeep.grants:grant", "Let a reader see relations of a warehouse."),
    "revoke": ("upkeep.grants:revoke", "Let a reader not see relations of a warehouse any more."),
    "grants": ("upkeep.grants:grants", "List who may see what of a warehouse."),
    "token": ("token", "Say who may ask a server of a warehouse."),
    "status": ("upkeep.status", "Show what a warehouse holds, and its condition."),
    "doctor": ("upkeep.doctor", "Say what is not as it should be, and what fixes it."),
    "verify": ("upkeep.verify", "Check a warehouse: its files, histories, relations and tables."),
    "gc": ("upkeep.gc", "Drop old history, dead writers, and files that nobody needs."),
    "backup": ("upkeep.backup:backup", "Copy a warehouse while others use it."),
    "restore": ("upkeep.backup:restore", "Make a warehouse of a backup."),
    "upgrade": (
        "upkeep.upgrade",
        "Bring a warehouse of an earlier version to the format of this one.",
    ),
    "alter": ("upkeep.alter", "Add, rename or drop columns of a base relation, keeping the data."),
    "erase": ("upkeep.erase", "Remove tuples from the data and from history."),
    "init": (
        "init",
        "Write a small project that works: program, data, tests, corollary.toml.",
    ),
    "documents": ("documents", "Match tree patterns against documents that streams write into."),
    "demo": ("demo", "Run the bundled example from end to end."),
}
"""The module of each command in `commands`, with its name if that is not `command`; and its line in
the help, in the order for newcomers."""


GARBAGE_MIN_OBJECTS = 250_000
"""Garbage is looked for when there are this many more objects than before."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = resolve_name(f"{__package__}.commands.{module}:{name or 'command'}")
        assert isinstance(command, click.Command)
        from corollary.cli.parameters import environment_option, has_project

        if has_project(command) and not any(each.name == "environment" for each in command.params):
            command.params.append(environment_option())
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, with a hint where the name is only almost right."""
        from difflib import get_close_matches

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = get_close_matches(args[0], COMMANDS, 1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None and _may_have_project(rest):
            from corollary.cli.project.with_project import add_project

            rest = add_project(ctx, name, command, rest)
        return name, command, rest


def _may_have_project(args: list[str]) -> bool:
    """Whether this directory is a project, or an environment of one is asked for."""
    from corollary.cli.parameters import ENVIRONMENT_VARIABLE, PROJECT_FILE

    is_asked = any(each.startswith("--environment") for each in args)
    return is_asked or ENVIRONMENT_VARIABLE in os.environ or os.path.lexists(PROJECT_FILE)


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

    Views are written as Datalog rules or in SQL; a warehouse keeps them true from run to run.
    Begin with:

    \b
      corollary demo                                    see it at work
      corollary check network.dl                        what is wrong with a program
      corollary run network.dl -F facts -D out          evaluate it once
      corollary run network.dl -F facts --warehouse wh  keep it; run again when something changed
      corollary watch network.dl -F facts --warehouse wh  the same, whenever something changes
      corollary apply wh --insert direct_link=new.csv   change it by hand
      corollary query wh 'link("a", y)'                 ask it
      corollary sql wh 'SELECT y FROM link'             ask it in SQL
      corollary why wh 'link("a", "d")'                 ask it why
      corollary trace network.dl -F facts --remove 'direct_link("a", "b")'
    """


def main(**extra: Any) -> None:
    """Run the command line."""
    refuse_pandas()
    # Imports make many objects and no garbage: looking for it takes a third of a short command,
    # once while it works and twice when the interpreter ends.
    gc.set_threshold(GARBAGE_MIN_OBJECTS)
    atexit.register(_spare_collection)
    group(**extra)


def _spare_collection() -> None:
    """Let the interpreter end without collecting what it drops; DuckDB would report it as lost."""
    if "duckdb" not in sys.modules:
        gc.freeze()
