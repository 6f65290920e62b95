"""What one types into the form of changes, as the JSON lines that `apply` takes."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from corollary.core.logic import Atom, Constant
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.parser import parse_goal

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
