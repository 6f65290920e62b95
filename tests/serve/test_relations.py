"""The list of relations: their last changes, as far as they are kept."""

from contextlib import closing
from pathlib import Path
from typing import Any

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.database.database import warehouse_of
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.relations import answer_describe, answer_relations
from corollary.serve.requests import DescribeRequest, RelationsRequest
from corollary.serve.service import ServiceLimits


def _last(context: HandlerContext, at: int | None = None) -> dict[str, Any]:
    listed = answer_relations(context, OWNER, RelationsRequest(at=at)).json["relations"]
    return {each["name"]: each["last_change"] for each in listed}


def test_only_commits_since_the_last_request_are_asked_for(tmp_path: Path) -> None:
    database = corollary.open(tmp_path / "w", engine="local")
    database.load(text=".decl a(x: number) .decl b(x: number) .decl c(x: number) c(x) :- a(x).")
    with closing(HandlerContext(database, ServiceLimits())) as context:
        warehouse = warehouse_of(database)
        assert warehouse is not None
        counts, asked = warehouse.catalog.change_counts, []

        def change_counts(after: int, upto: int) -> list[tuple[int, str, int, int]]:
            asked.append((after, upto))
            return counts(after, upto)

        warehouse.catalog.change_counts = change_counts  # type: ignore[method-assign]
        for relation, rows in (("a", [1, 2]), ("b", [1]), ("a", [3])):
            with context.acting_as(OWNER), database.transaction() as transaction:
                transaction.insert(relation, [(each,) for each in rows])
            _last(context)
        two = {"commit": 4, "added": 1, "removed": 0}
        assert _last(context) == {"a": two, "b": {"commit": 3, "added": 1, "removed": 0}, "c": two}
        assert asked == [(-1, 2), (2, 3), (3, 4)]
        assert _last(context, at=2)["a"] == {"commit": 2, "added": 2, "removed": 0}
        assert _last(context)["a"] == two


def test_the_lineage_of_columns_goes_one_step_up_and_down(tmp_path: Path) -> None:
    database = corollary.open(tmp_path / "w", engine="local")
    database.load(
        text=".decl a(x: number, y: number) .decl b(x: number) .decl c(n: number, z: number) "
        "b(x) :- a(x, y), y > 2. c(n, x + 1) :- b(x), n = count : { b(_) }."
    )
    database.grant("alice", "b")
    with closing(HandlerContext(database, ServiceLimits())) as context:
        found = answer_describe(context, OWNER, DescribeRequest("b")).json["lineage"]
        assert found["columns"] == {"x": [{"relation": "a", "column": "x", "how": "identity"}]}
        assert found["rows"] == [{"relation": "a", "column": "y", "how": "filter"}]
        assert found["uses"] == {"x": [{"relation": "c", "column": "z", "how": "transformation"}]}
        uses = answer_describe(context, OWNER, DescribeRequest("a")).json["lineage"]["uses"]
        assert uses["y"] == [{"relation": "b", "column": "", "how": "filter"}]
        alice = Principal("alice", AccessRole.READ)
        shown = answer_describe(context, alice, DescribeRequest("b")).json["lineage"]
        assert shown == {"columns": {}, "rows": [], "uses": {}}
