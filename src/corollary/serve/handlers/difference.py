"""What differs between two commits: which tuples came, and which went."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from corollary.core.program import Relation
from corollary.database.access.principals import Principal
from corollary.database.changes import json_rows
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.requests import DifferenceRequest

if TYPE_CHECKING:
    import pyarrow as pa


def answer_difference(
    context: HandlerContext, who: Principal, request: DifferenceRequest
) -> Answer:
    """Return which tuples came and went between two commits, by relation.

    A tuple that came and went again is not among them.
    """
    _, commit = context.view(who, request.at)
    database, _ = context.view(who)
    found: dict[str, dict[str, Any]] = {}
    if request.since < commit:
        for fed, table in database.feed(request.relation, since=request.since, upto=commit):
            change = _net_change(fed, table, request.limit)
            if change["counts"] != [0, 0]:
                found[fed.name] = change
    return Answer.of(commit, {"since": request.since, "at": commit, "changes": found})


def _net_change(fed: Relation, table: "pa.Table", limit: int) -> dict[str, Any]:
    """Return the net change of a feed.

    Additions and removals of a tuple take turns, so their signs add up to what is left of them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from corollary.database.feed_tables import COMMIT_COLUMNS
    from corollary.warehouse.files.durable_files import DELETE, INSERT

    width = len(fed.columns) - len(COMMIT_COLUMNS)
    shape = replace(fed, columns=fed.columns[:width], types=fed.types[:width])
    kinds = table.column(width)
    signs = pc.subtract(
        pc.cast(pc.equal(kinds, INSERT), pa.int64()), pc.cast(pc.equal(kinds, DELETE), pa.int64())
    )
    if not width:  # the empty tuple came, or went
        total = pc.sum(signs).as_py() or 0
        added: list[list[Any]] = [[]] if total > 0 else []
        removed: list[list[Any]] = [[]] if total < 0 else []
        return _as_json(shape, added, removed, len(added), len(removed))
    names = [f"c{index}" for index in range(width)]
    signed = pa.table([*table.columns[:width], signs], names=[*names, "sign"])
    sums = signed.group_by(names).aggregate([("sign", "sum")])
    rows = sums.select(names).rename_columns(list(shape.columns))
    came = rows.filter(pc.greater(sums.column("sign_sum"), 0))
    went = rows.filter(pc.less(sums.column("sign_sum"), 0))
    added, removed = (json_rows(each, shape, limit) if limit else [] for each in (came, went))
    return _as_json(shape, added, removed, came.num_rows, went.num_rows)


def _as_json(
    shape: Relation, added: list[list[Any]], removed: list[list[Any]], came: int, went: int
) -> dict[str, Any]:
    return {
        "columns": list(shape.columns),
        "added": added,
        "removed": removed,
        "counts": [came, went],
    }
