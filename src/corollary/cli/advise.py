"""`corollary advise`."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.amounts import as_bytes, as_rates
from corollary.cli.databases import Wanted, filled
from corollary.cli.warehouses import is_warehouse, opened
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.advisor.advice import Advice
    from corollary.core.engine import Limits
    from corollary.core.program import Program
    from corollary.database.database import Database


@click.command()
@click.argument("programs", metavar="PROGRAM...|WAREHOUSE", nargs=-1)
@click.option(
    "--query",
    "queries",
    metavar="RELATION[^bf]",
    multiple=True,
    help="A query to make quicker; ^bf says which columns are given. May be repeated. Default: "
    "what was asked of the warehouse, or what no other relation reads.",
)
@click.option(
    "--stats", metavar="WAREHOUSE", help="Whose sizes, query log and history are to be used."
)
@click.option(
    "-F",
    "--facts",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of the facts files, to measure sizes without a warehouse.",
)
@click.option("--budget", metavar="SIZE", help="So much all new views may take, such as 2GB.")
@options.update("--updates", "RELATION=N/h", "Changed tuples of a base relation. May be repeated.")
@options.update("--frequency", "QUERY=N/h", "How often a query is asked. May be repeated.")
@click.option(
    "--selection",
    type=click.Choice(["minimal", "paper", "budget"]),
    help="The smallest set of views that gains as much as all; the paper's; or what the whole "
    "workload is worth within the budget. Default: minimal, or budget if there is one.",
)
@click.option(
    "--scope",
    type=click.Choice(["scheme", "used"]),
    default="scheme",
    show_default=True,
    help="Whether all stored relations set how large a view may be, or those that queries read.",
)
@click.option(
    "--opaque",
    type=click.Choice(["opaque", "absorb"]),
    default="opaque",
    show_default=True,
    help="Whether simple comparisons stay in the rules or may move into views.",
)
@click.option(
    "--partial-clusters/--whole-clusters",
    default=True,
    show_default=True,
    help="Whether parts of groups that are too large are looked at.",
)
@click.option(
    "--self-materialisation",
    type=click.Choice(["allow", "forbid"]),
    default="allow",
    show_default=True,
    help="Whether a view may be the query itself.",
)
@click.option("--keys", is_flag=True, help="Propose keys that the data suggests.")
@click.option(
    "--sample",
    metavar="P",
    type=click.FloatRange(0, 1, min_open=True),
    help="Compute the new views for a share of the values of a column, to tell their sizes.",
)
@click.option("--verify", is_flag=True, help="Show that the rewritten queries answer the same.")
@click.option("--measure", is_flag=True, help="Time the queries before and after, on copies.")
@click.option(
    "--apply",
    metavar="WAREHOUSE",
    allow_from_autoenv=False,
    help="Store the views there and rewrite its rules.",
)
@click.option(
    "--revert",
    metavar="WAREHOUSE",
    allow_from_autoenv=False,
    help="Take back what --apply did there last.",
)
@click.option(
    "--drop", metavar="WAREHOUSE", help="Tell which stored views there cost more than they save."
)
@click.option(
    "--to", type=click.Path(path_type=Path, dir_okay=False), help="Write the new program there."
)
@options.engine
@options.limits
@options.format_
@options.quiet
def command(
    programs: tuple[str, ...],
    apply: str | None,
    revert: str | None,
    drop: str | None,
    format: str,
    quiet: bool,
    **rest: Any,
) -> None:
    """Find views that are worth storing, and rewrite queries to use them.

    The advisor cuts the rules of a query into groups of literals that share few variables with the
    rest. A group is worth storing if it lowers the exponent of the query's time, and cannot become
    larger than the largest stored relation. Keys and .fd declarations make it see more; a wrong one
    gives bad advice, never wrong answers.

    Prints for each query the exponents, the rules before and after, and each view with its size,
    its cost and the reason. With a warehouse (--stats) or facts (-F), real sizes stand beside them.
    Nothing is changed without --apply, which makes one commit; --revert takes it back.

    \b
      corollary advise airline.dl --query view
      corollary advise airline.dl --query view --stats warehouse --updates services=1000/h
      corollary advise warehouse --keys                      what was asked, with real sizes
      corollary advise airline.dl --query view --apply warehouse --verify
      corollary advise --revert warehouse
      corollary advise --drop warehouse                      stored views that do not pay
    """
    if bool(programs) == bool(revert or drop):
        raise click.UsageError(
            "name a program or a warehouse to advise on; or none, and --revert or --drop"
        )
    console = TerminalConsole(quiet)
    limits = options.limits_of(rest)
    engine = rest["engine"]
    with options.reported(format, console):
        from corollary.cli.advise_upkeep import take_back, weigh

        if revert is not None:
            with opened(revert, console, engine=engine, limits=limits) as database:
                take_back(database, format)
        elif drop is not None:
            with opened(drop, console, engine=engine, limits=limits) as database:
                weigh(database, format, rest)
        else:
            asked = Asked(programs, apply, format, limits, rest)
            with asked.source(console) as source:
                _advise(asked, source, console)


@dataclass(frozen=True, slots=True)
class Source:
    """The program to advise on, what holds its data, and where advice is to be applied."""

    program: "Program"
    data: "Database | None"
    target: "Database | None"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked on the command line."""

    programs: tuple[str, ...]
    apply: str | None
    format: str
    limits: "Limits"
    rest: dict[str, Any]

    @contextmanager
    def source(self, console: TerminalConsole) -> Iterator[Source]:
        """Open what is needed."""
        from corollary.database.program import read_programs
        from corollary.database.setting_aside import with_same_quarantine

        place = self.programs[0] if is_warehouse(self.programs[0]) else None
        if place is not None and len(self.programs) > 1:
            raise click.UsageError(f"'{place}' is a warehouse: it has its program")
        how = {"engine": self.rest["engine"], "limits": self.limits, "log_queries": False}
        places = dict.fromkeys(each for each in (place, self.rest["stats"], self.apply) if each)
        with ExitStack() as stack:
            held = {each: stack.enter_context(opened(each, console, **how)) for each in places}
            target = held.get(self.apply) if self.apply else None
            data = held.get(self.rest["stats"] or place or self.apply or "")
            if place is not None:
                program = held[place].program
            else:
                program = read_programs([Path(each) for each in self.programs])
                if target is not None:
                    program = with_same_quarantine(program, target.program)
            facts = self.rest["facts"]
            if data is None and facts is not None:
                paths = tuple(map(Path, self.programs))
                none = Wanted({"": "auto"}, ())
                data = stack.enter_context(filled(paths, facts, None, none, self.limits, console))
            yield Source(program, data, target)


def _advise(asked: Asked, source: Source, console: TerminalConsole) -> None:
    from corollary.advisor.calibrating import from_commits
    from corollary.advisor.documenting import as_json
    from corollary.advisor.reforming import reformed
    from corollary.advisor.reporting import report
    from corollary.analysis.check import check
    from corollary.cli.advise_actions import Actions
    from corollary.core.printer import print_program

    checked = check(source.program)
    advice = _advice(asked, source, console)
    after = reformed(checked, source.program, advice)
    console.done()
    calibration = None if source.data is None else from_commits(source.data)
    actions = Actions(advice, source, after, asked.rest, asked.format, console)
    if asked.format == "text":
        nothing = ["the program has no rules to advise on"]
        for line in report(advice, calibration) if advice.queries else nothing:
            click.echo(line)
    actions.run()
    to = asked.rest["to"]
    if to is not None:
        to.write_text(print_program(after), encoding="utf-8")
    if asked.format == "json":
        calibration = actions.calibration or calibration
        options.print_json({**as_json(advice, calibration), **actions.document})


def _advice(asked: Asked, source: Source, console: TerminalConsole) -> "Advice":
    from corollary.advisor.advising import advise
    from corollary.advisor.observing import (
        merged,
        queries_by_default,
        queries_logged,
        queries_named,
        sizes_of,
        update_rates,
    )
    from corollary.advisor.reading import read_scheme
    from corollary.advisor.scheme import Options, SelectionMode
    from corollary.database.program import load
    from corollary.errors import InputError

    rest, data = asked.rest, source.data
    budget = as_bytes(rest["budget"], "--budget")
    selection = rest["selection"] or ("minimal" if budget is None else "budget")
    if (selection == "budget" or budget is not None) and data is None:
        raise InputError.of(
            "C1102",
            "Whether views are worth a budget cannot be told without sizes.",
            None,
            "give a warehouse with --stats or facts with -F, or choose another --selection",
        )
    loaded = load(source.program)
    frequencies = as_rates(rest["frequency"], "--frequency")
    logged = [] if data is None else queries_logged(data)
    known = {each.relation: each.frequency for each in merged(logged, {})} | frequencies
    if rest["queries"]:
        queries = queries_named(rest["queries"], loaded.normal, known)
    else:
        queries = queries_by_default(loaded.normal, logged, frequencies)
    updates = dict(update_rates(data)) if data is not None else {}
    updates |= as_rates(rest["updates"], "--updates")
    wanted = Options(
        selection=SelectionMode(selection),
        scope=rest["scope"],
        opaque=rest["opaque"],
        partial_clusters=rest["partial_clusters"],
        self_materialisation=rest["self_materialisation"],
        budget=budget,
        updates=updates,
    )
    console.progress("measuring sizes")
    sizes = None if data is None else sizes_of(data)
    return advise(
        read_scheme(loaded.program, loaded.checked, queries, wanted.opaque), wanted, sizes
    )
