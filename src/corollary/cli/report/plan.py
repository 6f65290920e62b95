"""The plan of a dry run as tables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from corollary.cli.report.tables import counted, signed, table, terminal_width

if TYPE_CHECKING:
    from corollary.database.intake.dry_run import RunPlan, SourcePlan, TablePlan
    from corollary.database.program.relation_plans import RelationPlan
    from corollary.warehouse.publishing.table_schemas import TableSchema


def plan_lines(plan: "RunPlan", *, is_verbose: bool) -> Iterator[str]:
    """Yield the lines of a plan: sources, relations, tables, grants, cost.

    Args:
        plan: what a dry run has found.
        is_verbose: whether to say why an algorithm was chosen.
    """
    if plan.sources:
        rows = [_source(each) for each in plan.sources]
        yield from _table(["source", "relation", "reads", "rows"], rows)
        yield ""
    if plan.relations:
        titles = ["relation", "change", "tuples", "by", "why"]
        rows = [_relation(each, is_verbose=is_verbose) for each in plan.relations]
        yield from _table(titles, rows)
        yield ""
    if plan.tables:
        yield from _table(
            ["table", "change", "columns"], [_published(each) for each in plan.tables]
        )
        yield ""
    for reader, names in plan.lost_grants.items():
        listed = ", ".join(names)
        yield f"`{reader}` may not see {listed} any more: what is dropped loses its grants"
    if plan.relations or plan.tables:
        stored = counted(plan.stored_tuples, "tuple")
        published = counted(plan.published_rows, "row")
        yield (
            f"cost: {plan.seconds:.2f} s to read and derive, measured; {stored} to store and "
            f"{published} to publish come on top"
        )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return table(header, [[cell.split(" ") for cell in row] for row in rows], terminal_width())


def _source(each: "SourcePlan") -> list[str]:
    added_removed = signed(each.counts) or "–"
    bad = f", {counted(each.malformed, 'malformed record')}" if each.malformed else ""
    name = each.name.partition(" < ")[2] or each.name
    return [name, each.relation, str(each.state), f"{added_removed}{bad}"]


def _relation(each: "RelationPlan", *, is_verbose: bool) -> list[str]:
    stats = each.stats
    by = "" if stats is None or each.after is None or not each.after.is_derived else stats.algorithm
    why = each.reason
    if by and is_verbose and stats is not None:
        why = f"{why}; {by}: {stats.reason}"
    return [each.relation, str(each.edit), _tuples(each), by, why]


def _tuples(each: "RelationPlan") -> str:
    """Return how many tuples there are before and after, and the change."""
    before, after = ("–" if n is None else f"{n:,}" for n in (each.rows_before, each.rows_after))
    changed = signed(each.counts)
    return f"{before} → {after}" + (f" ({changed})" if changed else "")


def _published(each: "TablePlan") -> list[str]:
    return [each.relation, str(each.edit), _columns(each.before, each.after)]


def _columns(before: "TableSchema | None", after: "TableSchema | None") -> str:
    texts = [
        ", ".join(f"{name}: {type_}" for name, type_ in each)
        for each in (before, after)
        if each is not None
    ]
    return texts[0] if len(texts) == 1 or texts[0] == texts[1] else " → ".join(texts)
