"""The form of changes: written or filled in, tried out first, then committed."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import Response

from corollary.core.logic import Atom, Constant
from corollary.database.access.principals import AccessRole
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.parser import parse_goal
from corollary.serve.answers import ServiceError
from corollary.serve.requests import ApplyRequest, RelationsRequest
from corollary.web.visit import Page, Visit
from corollary.web.wording import goal

ROWS_SHOWN, ROWS_FETCHED = 10, 100


async def show_change(visit: Visit) -> Response:
    """Show the form, with the changes of the URL."""
    relations = (await visit.ask(RelationsRequest()))["relations"]
    base = [each for each in relations if each["kind"] == "base"]
    chosen = visit.parameters.get("relation", "")
    relation = next((each for each in base if each["name"] == chosen), base[0] if base else None)
    return await visit.render(
        "change.html",
        base=base,
        relation=relation,
        changes=visit.parameters.get("changes", ""),
        can_change=visit.who.role.includes(AccessRole.WRITE),
        can_edit=visit.who.role.includes(AccessRole.ADMIN),
    )


async def make_change(visit: Visit) -> Response:
    """Try the changes of the form out, or commit them; return what happens."""
    form = dict(parse_qsl((await visit.http.body()).decode("utf-8", "replace")))
    text, is_dry = form.get("changes", ""), form.get("do") != "commit"
    context: dict[str, Any] = {"is_dry": is_dry, "error": None, "outcome": None, "changed": []}
    relations = (await visit.ask(RelationsRequest()))["relations"]
    types = {each["name"]: [column["type"] for column in each["columns"]] for each in relations}
    try:
        lines = json_lines_of(text, types)
        if not lines:
            return await visit.render("change_outcome.html", **context)
        request = ApplyRequest(lines, dry_run=is_dry, alone=not is_dry, max_rows=ROWS_FETCHED)
        outcome = await visit.ask(request)
    except InputError as error:
        context["error"] = ServiceError.with_findings(400, error.diagnostics)
        return await visit.render("change_outcome.html", **context)
    except ServiceError as error:
        return await visit.render("change_outcome.html", **context | {"error": error})
    context |= {"outcome": outcome, "changed": _changed(outcome["changes"], types)}
    return await visit.render("change_outcome.html", **context)


def _changed(
    changes: Mapping[str, Mapping[str, Any]], types: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Return what is shown of each relation that changes."""
    found = []
    for name, change in changes.items():
        rows = [
            {"sign": sign, "goal": goal(name, row, types.get(name, [""] * len(row)))}
            for key, sign in (("added", "+"), ("removed", "-"))
            for row in change[key]
        ]
        counts = change.get("counts") or {key: len(change[key]) for key in ("added", "removed")}
        shown = rows[:ROWS_SHOWN]
        found.append(
            {
                "name": name,
                "added": counts["added"],
                "removed": counts["removed"],
                "rows": shown,
                "more": counts["added"] + counts["removed"] - len(shown),
            }
        )
    return found


OPERATIONS = {"+": ("insert", "add-rule"), "-": ("delete", "remove-rule")}
"""By sign: what is done with a tuple, and with a rule."""
CURE = 'write `+edge("a", "b")` or `-edge("a", "b")`, or a line of `apply --changes`'


def json_lines_of(text: str, types: Mapping[str, Sequence[str]]) -> str:
    r"""Return changes as JSON lines.

    A line is `+tuple`, `-tuple`, `+rule RULE`, `-rule RULE`, or a JSON object; a tuple without a
    sign is inserted. Empty lines and those that begin with `//` are left out.

    >>> print(json_lines_of('+edge("a", 2.5)\n-edge("b", 3.0)', {"edge": ["symbol", "float"]}))
    {"op": "insert", "relation": "edge", "row": ["a", 2.5]}
    {"op": "delete", "relation": "edge", "row": ["b", 3.0]}

    Args:
        text: what was typed.
        types: of the columns of each relation.

    Raises:
        InputError: `C1680`, a line is none of these.
    """
    found: list[str] = []
    refused: list[Diagnostic] = []
    for number, line in enumerate(text.splitlines(), 1):
        written = line.strip()
        if not written or written.startswith("//"):
            continue
        try:
            found.append(
                written if written.startswith("{") else json.dumps(_change(written, types))
            )
        except InputError as error:
            reason = error.diagnostics[0].message
            message = f"Line {number} is not a change: {reason}"
            refused.append(Diagnostic("C1680", message, None, CURE))
    if refused:
        raise InputError(refused)
    return "\n".join(found)


def _change(line: str, types: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    sign = line[0] if line[0] in OPERATIONS else "+"
    rest = line.removeprefix(sign).strip()
    of_tuple, of_rule = OPERATIONS[sign]
    if rest.startswith("rule "):
        return {"op": of_rule, "rule": rest.removeprefix("rule ").strip()}
    items = parse_goal(rest)
    match items:
        case (Atom(relation, arguments, sign="", state=None),):
            known = [*types.get(relation, ()), *[""] * len(arguments)]
            row = [_value(*each) for each in zip(arguments, known, strict=False)]
            return {"op": of_tuple, "relation": relation, "row": row}
        case _:
            raise InputError.of("C1680", "it is not a single tuple.")


def _value(argument: object, type_: str) -> Any:
    match argument:
        case Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case Constant(value=Decimal() as value):
            return float(value) if type_.startswith("float") else str(value)
        case Constant(value=datetime() | date() as value):
            return value.isoformat()
        case _:
            raise InputError.of("C1680", "a tuple has values only.")


PAGES = (
    Page("/change", show_change, "Change", "g e"),
    Page("/change/outcome", make_change, belongs_to="Change", methods=("POST",)),
)
