"""The console: a goal or a question in SQL, its answer, and how it is computed."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from corollary.core.printer import print_relation
from corollary.database.access.principals import AccessRole
from corollary.serve import requests
from corollary.serve.answers import ServiceError
from corollary.web.rule_text import arguments_of
from corollary.web.visit import Page, Visit
from corollary.web.wording import goal

ROWS_SHOWN, EXAMPLES = 200, 4
SQL = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
ATOM = re.compile(r"\s*([^\s(]+)\s*\((.*)\)\s*[.?]?\s*", re.DOTALL)
VARIABLE = re.compile(r"[A-Za-z?]\w*")


async def show_console(visit: Visit) -> Response:
    """Show the console, and the answer to what the URL asks."""
    question = visit.parameters.get("q", "").strip()
    relations = (await visit.ask(requests.RelationsRequest(at=visit.at)))["relations"]
    context: dict[str, Any] = {
        "question": question,
        "is_sql": bool(SQL.match(question)),
        "examples": _examples(relations),
        "relations": relations,
        "answer": None,
        "plan": None,
        "error": None,
        "seconds": 0.0,
        "can_explain": visit.at is None and visit.who.role.includes(AccessRole.WRITE),
    }
    if question:
        try:
            context |= await _answered(visit, question, relations)
        except ServiceError as error:
            context["error"] = error
    return await visit.render("console.html", **context)


async def _answered(
    visit: Visit, question: str, relations: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    began = time.perf_counter()
    found = await visit.ask(_request(visit, question))
    seconds = time.perf_counter() - began
    columns = found["columns"]
    rows = [
        {"values": row, "goal": _tuple(question, columns, row, relations)} for row in found["rows"]
    ]
    plan = None
    if visit.parameters.get("plan"):
        plan = (await visit.ask(requests.ExplainRequest(question=question)))["text"]
    return {"answer": found | {"rows": rows}, "seconds": seconds, "plan": plan}


def _request(visit: Visit, question: str) -> requests.Request:
    cursor = visit.parameters.get("cursor") or None
    if SQL.match(question):
        return requests.SqlRequest(question, at=visit.at, limit=ROWS_SHOWN, cursor=cursor)
    return requests.QueryRequest(question, at=visit.at, limit=ROWS_SHOWN, cursor=cursor)


def _tuple(
    question: str,
    columns: Sequence[str],
    row: Sequence[Any],
    relations: Sequence[Mapping[str, Any]],
) -> str:
    """Return the tuple that a row of the answer stands for, if the goal is one atom."""
    atom = None if SQL.match(question) else ATOM.fullmatch(question)
    found = atom and next((each for each in relations if each["name"] == atom[1].strip("`")), None)
    if not atom or not found:
        return ""
    arguments = [each for each in arguments_of(atom[2]) if each]
    values = dict(zip(columns, row, strict=False))
    if len(arguments) != len(found["columns"]):
        return ""
    written = []
    for argument, column in zip(arguments, found["columns"], strict=True):
        if argument in values:
            text = goal("p", [values[argument]], [column["type"]])
            written.append(text[2:-1])
        elif argument == "_" or VARIABLE.fullmatch(argument):
            return ""
        else:
            written.append(argument)
    return f"{print_relation(found['name'])}({', '.join(written)})"


def _examples(relations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return questions that fit the program: a goal and a count for some relations."""
    named = [each for each in relations if each["columns"] and each["kind"] != "base"]
    chosen = (named or [each for each in relations if each["columns"]])[:EXAMPLES]
    found = []
    for number, each in enumerate(chosen):
        columns = [column["name"] for column in each["columns"]]
        if number % 2 == 0:
            found.append(f"{print_relation(each['name'])}({', '.join(columns)})")
        else:
            found.append(_counting(each["name"], columns[-1]))
    return found


def _counting(relation: str, column: str) -> str:
    """Return a question in SQL: how often each value of a column occurs."""
    # It is shown for the user to send, not run.
    return (
        f"SELECT {column}, COUNT(*) AS n FROM {relation} "  # noqa: S608
        f"GROUP BY {column} ORDER BY n DESC LIMIT 10"
    )


PAGES = (Page("/console", show_console, "Console", "g c"),)
