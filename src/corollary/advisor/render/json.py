"""Advice as a JSON document, and the SQL of its views and rewritten queries.

A view that is to be stored is a materialised view in Spark. DuckDB has none: there it is a table
that is made from its query, and has to be made again when data change.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from corollary.advisor.advice import Advice, NewView, PredicateAdvice, global_exponents
from corollary.advisor.check.measurement import Calibration, Measurements
from corollary.advisor.check.sampled_sizes import SampledSize
from corollary.advisor.check.verification import CheckResult
from corollary.advisor.render.trace import trace
from corollary.core.printer import print_clause
from corollary.core.program import NormalProgram, Program, relations_read
from corollary.database.program.loaded_program import load_program


def advice_as_json(
    advice: Advice,
    calibration: Calibration | None = None,
    sql: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Return the document of advice.

    Args:
        advice: the advice.
        calibration: if it is given, the document has seconds.
        sql: the statements of views and rewritten queries, by relation and dialect.
    """
    statements = sql or {}
    found = {
        "queries": {
            name: {
                **_predicate(each, calibration),
                **_global_exponents(advice, name),
                **_sql(name, statements),
            }
            for name, each in advice.queries.items()
        },
        "other_predicates": {
            name: _predicate(each, calibration)
            for name, each in advice.predicates.items()
            if not each.is_query and each.is_applicable
        },
        "complete": advice.is_complete,
        "work": None if advice.work is None else advice.work.to_json(),
        "sampled_relations": dict(advice.sampled),
        "scheme_effective_arity": {"value": advice.arity.value, "set_by": advice.arity.set_by},
        "paper_effective_arity": advice.arity.paper,
        "materialise": [
            {**_view(each, calibration), **_sql(each.name, statements)}
            for each in advice.views.values()
        ],
        "rejected": [
            {"rule": print_clause(each.clause), "why": each.reason} for each in advice.rejected
        ],
    }
    if calibration is not None:
        found["calibration"] = {
            "seconds_per_row_op": calibration.seconds_per_row,
            "from": calibration.source,
            "seconds_per_call": calibration.floor_seconds,
        }
    return found


def _sql(name: str, statements: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    return {"sql": dict(statements[name])} if name in statements else {}


def _global_exponents(advice: Advice, name: str) -> dict[str, int]:
    before, after = global_exponents(advice, name)
    return {"global_before": before, "global_after": after}


def _predicate(each: PredicateAdvice, calibration: Calibration | None) -> dict[str, Any]:
    found = {
        "applicable": each.is_applicable,
        "reason": each.reason,
        "before": each.before.left_deep,
        "after": each.after.left_deep,
        "bushy": each.before.bushy,
        "pipelined": each.before.pipelined,
        "virtual_after": each.virtual_after,
        "exact": each.before.is_exact and each.after.is_exact,
        "frequency": each.query.frequency,
        "rewritten": [print_clause(clause) for clause in each.rewritten],
    }
    if each.work is not None:
        found["work_before"], found["work_after"] = (round(work) for work in each.work)
        if calibration is not None:
            before, after = (calibration.query_seconds(work) for work in each.work)
            found["estimated_seconds_before"], found["estimated_seconds_after"] = before, after
    return found


def _view(view: NewView, calibration: Calibration | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": view.name,
        "arity": len(view.variables),
        "degree": view.degree,
        "rules": [print_clause(clause) for clause in view.clauses],
        "self_materialisation": view.is_self_materialisation,
        "recommendation": view.recommendation,
        "build": view.build,
        "upkeep": view.upkeep,
    }
    if view.estimate is not None:
        found["rows"] = round(view.estimate.rows)
        found["bytes"] = round(view.estimate.bytes)
        found["upkeep_per_hour"] = round(view.estimate.upkeep)
        if calibration is not None:
            found["estimated_build_seconds"] = calibration.seconds_for(view.estimate.build)
            found["estimated_upkeep_seconds_per_hour"] = calibration.seconds_for(
                view.estimate.upkeep
            )
    return found


def trace_as_json(advice: Advice) -> list[dict[str, Any]]:
    """Return the phases of the algorithm, and the materialisation trees."""
    return [asdict(each) for each in trace(advice)]


def check_results_as_json(results: Iterable[CheckResult]) -> list[dict[str, Any]]:
    """Return the results of verification."""
    return [
        {"check": each.check, "about": each.about, "differences": list(each.differences)}
        for each in results
    ]


def measurements_as_json(measurements: Measurements) -> dict[str, Any]:
    """Return measurements."""
    return {
        "clock": "processor" if measurements.is_processor_time else "wall",
        "build_seconds": measurements.build_seconds,
        "rows": dict(measurements.rows),
        "queries": [
            {
                "query": each.query,
                "before_seconds": each.before_seconds,
                "after_seconds": each.after_seconds,
                "floor_seconds": each.floor_seconds,
                "cold_seconds": list(each.cold_seconds),
                "runs": each.warm_runs,
                "speed_up": each.speed_up,
                "break_even_queries": each.break_even_queries(measurements.build_seconds),
            }
            for each in measurements.queries
        ],
    }


def samples_as_json(samples: Iterable[SampledSize]) -> list[dict[str, Any]]:
    """Return the sizes of views by samples."""
    return [
        {
            "view": each.view,
            "rows": round(each.rows),
            "column": each.variable,
            "values": each.sampled_values,
            "of_values": each.all_values,
            "found": each.sampled_rows,
        }
        for each in samples
    ]


# --- SQL -----------------------------------------------------------------------------------------


DIALECTS = ("spark", "duckdb")


def advised_sql(advice: Advice, after: Program) -> dict[str, dict[str, str]]:
    """Return the statement of each new view and rewritten query, by relation and dialect.

    What cannot be said in a dialect is a comment that says why.

    Args:
        advice: the advice.
        after: the program that follows it.
    """
    found: dict[str, dict[str, str]] = {}
    for dialect in DIALECTS:
        for name, text in _statements(advice, after, dialect).items():
            found.setdefault(name, {})[dialect] = text
    return found


def _statements(advice: Advice, after: Program, dialect: str) -> Mapping[str, str]:
    from corollary.sqlgen.dialect import DialectName
    from corollary.sqlgen.script import print_sql, script_of

    changed = [name for name, each in advice.predicates.items() if each.is_applicable]
    parts = {name: view.relations for name, view in advice.views.items()}
    if not [*parts, *changed]:
        return {}
    normal = load_program(after).normal
    done: set[str] = set()
    for name in changed:
        below = [each for each in _parts_of(name, normal) if each not in {*done, *changed}]
        done.update(below)
        parts[name] = (*below, name)
    names = [each for every in parts.values() for each in every]
    statements = print_sql(normal, DialectName(dialect), {}, names, materialises_tables=True)
    by_name = {each.relation: script_of([each]).rstrip() for each in statements}
    found = {
        name: "\n".join(by_name[each] for each in every if each in by_name)
        for name, every in parts.items()
    }
    return {name: text for name, text in found.items() if text}


def _parts_of(query: str, program: NormalProgram) -> Iterator[str]:
    """Yield the relations that are parts of a query in SQL, such as `sql_1.each`, bottom up."""
    read = relations_read(program.rules, program.aggregations)
    found, stack, seen = list[str](), [query], {query}
    while stack:
        for name in sorted(read.get(stack.pop(), {}).keys() - seen):
            seen.add(name)
            stack.append(name)
            is_part = "." in name and name.partition(".")[0] == query.partition(".")[0]
            if is_part and program.relations[name].is_declared:
                found.append(name)
    yield from reversed(found)
