"""`corollary trace`."""

from dataclasses import astuple, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from corollary.cli import options
from corollary.cli.databases import load_in_memory
from corollary.cli.parameters import COUNT, choice, family, functors, option, programs
from corollary.console import Console, SilentConsole
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from corollary.database.program.loaded_program import Fact
    from corollary.database.transaction import Transaction
    from corollary.provenance.changes.transaction_proofs import DisqualifiedProofs

MAX_TEXT_TUPLES, MAX_JSON_TUPLES = 20, 1000
"""The maximum number of tuples of a list, unless --max-rows is given."""

ENGINES = choice("local", "spark")

UPDATE = {"multiple": True, "allow_from_autoenv": False}
"""An update is not a setting, so no environment variable sets it."""


@dataclass(frozen=True)
class UpdateOptions:
    """The tuples and rules that are added and removed."""

    add: Annotated[
        tuple[str, ...],
        "Add this tuple to a base relation. May be repeated.",
        option(**UPDATE, metavar="TUPLE"),
    ]
    remove: Annotated[
        tuple[str, ...],
        "Remove this tuple from one. May be repeated.",
        option(**UPDATE, metavar="TUPLE"),
    ]
    add_rule: Annotated[
        tuple[str, ...], "Add this rule. May be repeated.", option(**UPDATE, metavar="RULE")
    ]
    remove_rule: Annotated[
        tuple[str, ...], "Remove this rule. May be repeated.", option(**UPDATE, metavar="RULE")
    ]


@dataclass(frozen=True)
class TracePropagationOptions(options.PropagationOptions):
    """What maintains derived relations, and without which optimisations; several to compare."""

    engine: Annotated[
        str, "What maintains it: here, or Spark, which a change asks for partitions.", ENGINES
    ]
    placement: options.Placement
    without: options.Without
    compare: Annotated[
        str | None,
        "Let each of these maintain the derived relations, and show them side by side.",
        option(metavar="ALGORITHM,…", allow_from_autoenv=False),
    ]

    @property
    def compared(self) -> tuple[str, ...]:
        """The algorithms to compare, each once.

        Raises:
            click.BadParameter: one does not exist, or there are not two.
        """
        if self.compare is None:
            return ()
        names = tuple(dict.fromkeys(each.strip() for each in self.compare.split(",")))
        wrong = [each for each in names if each not in options.ALGORITHMS]
        if wrong or len(names) < 2:
            what = f"there is no algorithm '{wrong[0]}'" if wrong else "name two or more"
            raise click.BadParameter(
                f"{what}; write dred,epf, with some of {', '.join(options.ALGORITHMS)}",
                param_hint="'--compare'",
            )
        return names


@dataclass(frozen=True)
class TraceOutputOptions(options.OutputOptions):
    """How the trace is printed."""

    max_rows: Annotated[
        int | None,
        f"Print at most this many tuples of a list. Default: {MAX_TEXT_TUPLES}; "
        f"{MAX_JSON_TUPLES} in JSON.",
        option(type=COUNT),
    ]
    verbose: Annotated[
        bool,
        "Leave nothing out, and prove disqualified tuples.",
        option("-v", "--verbose", is_flag=True),
    ]

    @property
    def limit(self) -> int:
        """The maximum number of tuples of a list."""
        default = MAX_JSON_TUPLES if self.is_json else MAX_TEXT_TUPLES
        return default if self.max_rows is None else self.max_rows


@click.command()
@programs
@family("files", options.FileOptions)
@family("update", UpdateOptions)
@family("propagation", TracePropagationOptions)
@family("limits", options.LimitOptions)
@functors
@family("output", TraceOutputOptions)
def command(
    programs: tuple[Path, ...],
    files: options.FileOptions,
    update: UpdateOptions,
    propagation: TracePropagationOptions,
    limits: options.LimitOptions,
    output: TraceOutputOptions,
) -> None:
    """Show one propagation step by step, as the tables of the papers do.

    Evaluates the program in memory, changes it in one transaction (removals first, then additions)
    and prints a line for every invocation of a rule: the updates that came in, what they might
    change (approximation), what is provable all the same (disqualified), and what really changes
    (actual). Then the changes of every relation, and the counters with the algorithm and why it was
    chosen. No file is changed.

    For dred and ranked, which work in stages, a line is what a rule derives in a round of a stage:
    overestimate and rederived, or candidates, kept and suspended. With --compare, each algorithm
    makes the same transaction; tables and counters of all are shown, and whether the changes are
    the same. With --engine spark, jobs are listed with the partitions that they asked. With -v, the
    first disqualified tuples of each line are proved: one that stays, after the change, and one
    that is not new, before it.

    \b
      corollary trace tc.dl -F facts --remove 'edge("b", "d")' --algorithm epf
      corollary trace tc.dl -F facts --add 'edge("b", "f")' --relation tc=ranked
      corollary trace tc.dl -F facts --add-rule 'tc(x, x) :- edge(x, _).' --format json
      corollary trace tc.dl -F facts --remove 'edge("b", "d")' --compare dred,pf,epf,ranked
      corollary trace tc.dl -F facts --remove 'edge("b", "d")' --algorithm epf --without sharing
      corollary trace tc.dl -F facts --add 'edge("b", "f")' --engine spark --placement partitions
    """
    if not any(astuple(update)):
        raise click.UsageError(
            "nothing changes, so there is nothing to trace; say what does, as in "
            '--remove \'edge("b", "d")\', or with --add, --add-rule or --remove-rule'
        )
    compared = propagation.compared
    if compared and propagation.algorithm != "auto":
        raise click.UsageError("--compare names the algorithms; leave out --algorithm")
    with output.reporting() as console:
        from corollary.cli.report.changes import alert_lines
        from corollary.cli.report.trace import (
            comparison_as_json,
            comparison_lines,
            trace_as_json,
            trace_lines,
        )
        from corollary.provenance.changes.transaction_proofs import DisqualifiedProofs

        proofs: dict[str, DisqualifiedProofs] = {}

        def change(algorithm: str) -> "Transaction":
            database = load_in_memory(
                programs,
                files.facts,
                files.root,
                replace(propagation, algorithm=algorithm),
                limits.limits,
                console,
                "driver" if propagation.engine == "local" else propagation.placement,
                without=propagation.without,
                today=files.today,
            )
            # What has no effect is said once.
            is_first = algorithm in (compared or (algorithm,))[:1]
            if output.verbose:
                proofs[algorithm] = DisqualifiedProofs()
            notes = console if is_first else SilentConsole()
            return _change(database, update, notes, proofs.get(algorithm))

        if compared:
            traced = {algorithm: change(algorithm) for algorithm in compared}
            output.show(
                lambda: comparison_as_json(traced, output.limit, proofs),
                comparison_lines(traced, output.limit, proofs, is_full=output.verbose),
            )
            return
        transaction = change(propagation.algorithm)
        proved = proofs.get(propagation.algorithm)
        output.show(
            lambda: trace_as_json(transaction, output.limit, proved),
            chain(
                trace_lines(transaction, output.limit, proved, is_full=output.verbose),
                alert_lines(transaction, MAX_JSON_TUPLES),
            ),
        )


def _change(
    database: Database, update: UpdateOptions, console: Console, proofs: "DisqualifiedProofs | None"
) -> "Transaction":
    """Commit one transaction with all updates; note which of them have no effect.

    Proofs of disqualified tuples are found on the way, if they are asked for.
    """
    from corollary.database.program.loaded_program import read_facts

    loaded = state_of(database).loaded
    removed = [each for text in update.remove for each in read_facts(loaded, text, "--remove")]
    added = [each for text in update.add for each in read_facts(loaded, text, "--add")]
    with database.transaction(is_traced=True) as transaction:
        if proofs is not None:
            transaction.inspect(partial(proofs.find, state_of(database)))
        for text in update.remove_rule:
            transaction.remove_rule(text)
        for text in update.add_rule:
            transaction.add_rule(text)
        for name, row in removed:
            transaction.delete(name, [row])
        for name, row in added:
            transaction.insert(name, [row])
    _note_idle(database, transaction, removed, added, console)
    return transaction


def _note_idle(
    database: Database,
    transaction: "Transaction",
    removed: "list[Fact]",
    added: "list[Fact]",
    console: Console,
) -> None:
    """Note which tuples stay since the text asserts them, were there, or were not there."""
    from corollary.cli.report.changes import retained_lines
    from corollary.core.arrow import to_python
    from corollary.core.printer import print_value

    for line in retained_lines(transaction):
        console.note(line)
    kept = {name: set(to_python(each.table())) for name, each in transaction.kept.items()}
    for updates, others, remark in (
        (removed, added, "was not there to be removed"),
        (added, removed, "was there already"),
    ):
        for name, row in updates:
            relation = state_of(database).writable_relation(name)
            if relation.is_derived or (name, row) in others:
                continue
            if updates is removed and row in kept.get(name, ()):
                continue
            change = transaction.changes[name]
            if row not in to_python(change.removed if updates is removed else change.added):
                values = map(print_value, row, relation.types)
                console.note(f"{name}({', '.join(values)}) {remark}")
