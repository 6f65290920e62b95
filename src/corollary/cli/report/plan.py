"""What `plan` prints: definitions, relations, rows, alerts, and the id by which it is approved."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.cli.options import ChangeOutputOptions
from corollary.cli.report.changes import plan_lines, report_run
from corollary.console import TerminalConsole
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from corollary.core.program import Program
    from corollary.database.intake.dry_run import RunPlan
    from corollary.database.intake.pipeline import PipelineRun

DEFINITIONS_MAX_LINES = 40
"""The maximum number of lines of the program that are listed."""
Definitions = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Prints a plan.

    Attributes:
        approval: the command that runs it, up to its id.
        sample: how many rows of each relation are listed.
    """

    approval: str
    sample: int

    def report(
        self,
        outcome: "PipelineRun",
        warehouse: str,
        output: ChangeOutputOptions,
        console: TerminalConsole,
    ) -> None:
        """Print a plan, and what would be violated; the arguments are those of `report_run`."""
        assert outcome.plan is not None
        definitions = _definitions(outcome.plan)
        more = {"id": outcome.plan_id, "definitions": definitions}
        report_run(outcome, warehouse, output, console, self._lines(outcome, output), more)

    def _lines(self, outcome: "PipelineRun", output: ChangeOutputOptions) -> Iterator[str]:
        assert outcome.plan is not None
        yield from _definition_lines(_definitions(outcome.plan))
        yield from plan_lines(outcome.plan, is_verbose=output.verbose)
        yield from self._rows(outcome)
        if not outcome.plan.constraints:
            yield f"plan {outcome.plan_id}; to run it: {self.approval} --approve {outcome.plan_id}"

    def _rows(self, outcome: "PipelineRun") -> Iterator[str]:
        """Yield some of the rows that come and go."""
        from corollary.database.changes import json_rows

        for name, change in outcome.changes.items():
            removed = change.before or change.relation, change.removed
            for sign, (relation, table) in {
                "+": (change.relation, change.added),
                "−": removed,
            }.items():
                for row in json_rows(table.slice(0, self.sample), relation):
                    values = ", ".join(json.dumps(each, ensure_ascii=False) for each in row)
                    yield f"{sign} {name}({values})"
                if table.num_rows > self.sample > 0:
                    yield f"{sign} {name}: and {table.num_rows - self.sample:,} more"


def _definitions(plan: "RunPlan") -> Definitions:
    """Return the definitions that come and go, as they are written."""
    before, after = (_texts(each) for each in (plan.before, plan.after))
    found = {"added": (after, {*before}), "removed": (before, {*after})}
    return {
        name: [text for text in texts if text not in others]
        for name, (texts, others) in found.items()
    }


def _texts(program: "Program") -> list[str]:
    """Return the statements in SQL of a program, and what else it has, line by line."""
    from corollary.core.printer import print_program
    from corollary.warehouse.sources.quarantine import QUARANTINE

    statements = [each for each in program.directives if each.name == "sql"]
    hidden = {QUARANTINE.name, *(each.relation for each in statements)}

    def is_shown(relation: str) -> bool:
        return relation.partition(".")[0] not in hidden

    rest = replace(
        program,
        declarations=tuple(each for each in program.declarations if is_shown(each.name)),
        directives=tuple(each for each in program.directives if is_shown(each.relation)),
        reactions=tuple(each for each in program.reactions if is_shown(each.relation)),
        clauses=tuple(each for each in program.clauses if is_shown(each.heads[0].relation)),
    )
    lines = [each for each in print_program(rest).splitlines() if each]
    return [*lines, *(each.parameter("text") for each in statements)]


def _definition_lines(definitions: Definitions) -> Iterator[str]:
    lines = [
        f"{sign} {line}"
        for sign, key in (("-", "removed"), ("+", "added"))
        for text in definitions[key]
        for line in text.splitlines()
    ]
    yield from lines[:DEFINITIONS_MAX_LINES]
    if len(lines) > DEFINITIONS_MAX_LINES:
        yield f"and {len(lines) - DEFINITIONS_MAX_LINES:,} more lines of the program"
    if lines:
        yield ""
