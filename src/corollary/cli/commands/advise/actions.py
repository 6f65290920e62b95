"""What `corollary advise` does with advice: propose keys, verify, measure, apply."""

from dataclasses import field
from typing import TYPE_CHECKING, Any

import click

from corollary.advisor.apply import apply, reformulate, revert
from corollary.advisor.check import measurement
from corollary.advisor.check.dependencies import find_violated_dependencies, propose_keys
from corollary.advisor.check.sampled_sizes import sample_sizes
from corollary.advisor.check.scratch_database import read_base_tables
from corollary.advisor.check.verification import CheckResult, find_differing_views, verify
from corollary.advisor.render import json
from corollary.advisor.render.text import format_duration
from corollary.analysis.check import check
from corollary.cli.commands.advise.options import AdviseOptions
from corollary.cli.options import OutputOptions
from corollary.console import TerminalConsole
from corollary.core.printer import print_clause, print_declaration
from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError, Severity, render

if TYPE_CHECKING:
    from corollary.advisor.advice import Advice
    from corollary.advisor.inputs import SqlLog
    from corollary.database.database import Database


@dataclass(frozen=True, slots=True)
class AdviceSource:
    """The program to advise on, the database with its data, and the one to apply the advice to.

    Attributes:
        log: the log of SQL queries that the program was extended by, if there is one.
    """

    program: Program
    data: "Database | None"
    target: "Database | None"
    log: "SqlLog | None" = None


@dataclass(slots=True)
class AdviceActions:
    """Does what is asked with advice, and collects the results for the JSON document."""

    advice: "Advice"
    source: AdviceSource
    after: Program
    options: AdviseOptions
    output: OutputOptions
    console: TerminalConsole
    document: dict[str, Any] = field(default_factory=dict)
    calibration: measurement.Calibration | None = None

    def run(self) -> None:
        """Do what is asked, in order.

        Raises:
            InputError: answers differ, so that nothing is applied, or it is reverted.
        """
        if self.source.data is not None:
            self._check()
        if self.options.sample is not None:
            self._sample(self.options.sample)
        if self.options.verify:
            self._verify()
        if self.options.measure:
            self._measure()
        if self.source.target is not None:
            self._apply()

    def _print(self, text: str) -> None:
        if not self.output.is_json:
            self.console.done()
            click.echo(text)

    def _check(self) -> None:
        data = self.source.data
        assert data is not None
        broken = list(find_violated_dependencies(data))
        for each in broken:
            finding = Diagnostic(
                "C1106",
                f"{each}.",
                None,
                "the advice that relies on it may be bad, its answers are right",
                severity=Severity.WARNING,
            )
            self.console.note(render(finding))
        if broken:
            self.document["broken_dependencies"] = [str(each) for each in broken]
        if self.options.keys:
            keys = list(propose_keys(data))
            self.document["proposed_keys"] = [
                {"relation": each.relation, "columns": list(each.columns)} for each in keys
            ]
            for key in keys:
                self._print(f"proposed  {key}; declare it if that is no accident")

    def _sample(self, share: float) -> None:
        if self.source.data is None:
            raise click.UsageError("--sample needs data: give --stats, --apply or -F")
        self.console.progress("sampling")
        samples = sample_sizes(
            self.advice,
            self.source.program,
            self.after,
            read_base_tables(self.source.data),
            share,
            engine=self.options.engine,
        )
        self.document["sampled"] = json.samples_as_json(samples)
        for each in samples:
            figures = self.advice.views[each.view].estimate
            guess = "" if figures is None else f"; {figures.rows:,.0f} were expected"
            self._print(
                f"sampled   {each.view} has about {each.rows:,.0f} rows: {each.sampled_rows:,} for "
                f"{each.sampled_values:,} of {each.all_values:,} values of {each.variable}{guess}"
            )

    def _verify(self) -> None:
        tables = None if self.source.data is None else read_base_tables(self.source.data)
        findings: list[CheckResult] = []
        self.console.progress("verifying")
        for each in verify(self.advice, self.source.program, self.after, tables):
            findings.append(each)
            verdict = "same" if each.is_fine else "DIFFERS"
            self._print(f"verified  {each.check}: {each.about}: {verdict}")
        self.document["verified"] = json.check_results_as_json(findings)
        _check_same([text for each in findings for text in each.differences], "was changed")

    def _measure(self) -> None:
        if self.source.data is None:
            raise click.UsageError("--measure needs data: give --stats, --apply or -F")
        self.console.progress("measuring")
        measured = measurement.measure(
            self.advice,
            self.source.program,
            self.after,
            read_base_tables(self.source.data),
            engine=self.options.engine,
        )
        self.document["measured"] = json.measurements_as_json(measured)
        self.calibration = measurement.calibrate_from_measurements(self.advice, measured)
        for each in measured.queries:
            is_changed = self.advice.queries[each.relation].is_applicable
            line = _measurement_line(each, measured, self._expected(each))
            self._print(line if is_changed else f"measured  {_times(each)}; it stays as it is")
        for name, rows in measured.rows.items():
            figures = self.advice.views[name].estimate
            guess = "" if figures is None else f", {figures.rows:,.0f} were expected"
            self._print(f"measured  {name} has {rows:,} rows{guess}")
        self._print_calibration()
        self._withdraw(measured)

    def _withdraw(self, measured: measurement.Measurements) -> None:
        """Withdraw what, as measured, gains too little: it is not applied."""
        advice = measurement.withdraw_small_gains(self.advice, measured)
        for name, each in advice.predicates.items():
            if self.advice.predicates[name].is_applicable and not each.is_applicable:
                self._print(f"withdrawn {name}: {each.reason}")
        self.advice = advice
        self.after = reformulate(check(self.source.program), self.source.program, advice)

    def _print_calibration(self) -> None:
        """Print how long a row operation takes, and what upkeep of the views then costs."""
        calibration = self.calibration
        if calibration is None:
            return
        floor = format_duration(calibration.floor_seconds)
        self._print(
            f"measured  {format_duration(calibration.seconds_per_row)} for a row-op, "
            f"going by {calibration.source}; {floor} for a call"
        )
        for name, view in self.advice.views.items():
            if view.estimate is not None and view.estimate.upkeep:
                upkeep = format_duration(calibration.seconds_for(view.estimate.upkeep))
                self._print(f"expected  {name} takes {upkeep} an hour to keep true")

    def _expected(self, each: measurement.QueryTimes) -> str:
        """Return the speed-up that the estimate promises, with the time of a call."""
        work = self.advice.queries[each.relation].work
        if work is None:
            return ""
        before, after = work[0], max(work[1], 1.0)
        if self.calibration is not None:
            before, after = (self.calibration.query_seconds(rows) for rows in work)
        return f" where {before / after:.1f} x was expected"

    def _apply(self) -> None:
        target = self.source.target
        assert target is not None
        if not self.advice.is_applicable:
            self._print("nothing to apply")
            return
        self.console.progress("storing views")
        transaction = apply(target, self.advice, self.source.program, self.after)
        if self.options.verify:
            wrong = list(find_differing_views(target, self.advice.views))
            if wrong:
                revert(target)
            _check_same(wrong, "is kept: the advice was taken back")
        target.publish(transaction)
        number = transaction.commit_number
        self.document["applied"] = {"commit": number, "views": list(self.advice.views)}
        stored = [view.name for view in self.advice.views.values() if not view.is_virtual]
        what = f"stored {', '.join(stored)}" if stored else "rules rewritten, nothing stored"
        self._print(f"commit {number}: {what}")
        self._print("the program now says; change your files likewise (--to FILE writes all of it)")
        for declaration in self.after.declarations:
            if any(declaration.name in view.relations for view in self.advice.views.values()):
                self._print(f"  {print_declaration(declaration)}")
        for view in self.advice.views.values():
            for clause in view.clauses:
                self._print(f"  {print_clause(clause)}")
        for each in self.advice.predicates.values():
            if each.is_applicable:
                for clause in each.rewritten:
                    self._print(f"  {print_clause(clause)}")


def _times(each: measurement.QueryTimes) -> str:
    before, after = 1000 * each.before_seconds, 1000 * each.after_seconds
    return f"{each.query}: {before:.1f} -> {after:.1f} ms"


def _measurement_line(
    each: measurement.QueryTimes, measured: measurement.Measurements, expected: str
) -> str:
    pays = each.break_even_queries(measured.build_seconds)
    when = "never pays: drop it" if pays is None else f"pays after {max(1, round(pays)):,} queries"
    cold = f"cold {1000 * each.cold_seconds[0]:.1f} -> {1000 * each.cold_seconds[1]:.1f} ms"
    return (
        f"measured  {_times(each)}, {each.speed_up:.1f} x{expected} "
        f"(median of {each.warm_runs} warm runs; {cold}); "
        f"build {measured.build_seconds:.2f} s, {when}"
    )


def _check_same(differences: list[str], what: str) -> None:
    if differences:
        raise InputError.of(
            "C1105",
            f"The rewritten program is not the same: {'; '.join(differences)}.",
            None,
            f"nothing {what}; please report this",
        )
