"""Texts of SQL that are questions, and who answers them."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from corollary.database.program.goals import SQL_START
from corollary.database.program.question_bounds import check_size
from corollary.database.reading.answer import SqlAnswer
from corollary.errors import InputError
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.frontends.sql.statements.questions import StatementPlace, take_version
from corollary.source import SourceFile

_QUESTION_START = re.compile(
    r"[\s(]*(?:(?:select|with|from)\s|table\s+[\w`]|values\b)", re.IGNORECASE
)
SQL_PLACE = "SQL"
"""What messages call the text that was passed."""

Ask = Callable[[Any, StatementPlace, object], SqlAnswer]
"""Answers a question: its tree, its text, and the point in history (None: now)."""


Recall = Callable[[str, Mapping[str, Any]], SqlAnswer | None]
"""Answers a question, its text and parameters, by the plan of an earlier one."""


def answer_text(
    text: str, parameters: Mapping[str, Any], at: object, ask: Ask, refuse: Callable[[], None]
) -> SqlAnswer:
    """Answer a text that is one question; anything else is refused by `refuse`.

    Raises:
        InputError: it is not one question.
    """
    place = StatementPlace(SourceFile(SQL_PLACE, text), parameters)
    statements = read_statements(place.file)
    if any(not isinstance(each, nodes.QueryStatement) for each in statements):
        refuse()
    if len(statements) != 1 or not isinstance(statements[0], nodes.QueryStatement):
        raise InputError.of(
            "C1378",
            f"One question is expected, not {len(statements)} statements.",
            None,
            "ask one after the other",
        )
    return ask_question(statements[0], place, at, ask)


def read_statements(file: SourceFile) -> list[nodes.Statement]:
    """Return the statements of a text."""
    check_size(file.text)
    return parse_statements(file)


def is_sql(text: str) -> bool:
    """Whether a text begins as SQL does, and not as a goal.

    >>> is_sql("SELECT -x FROM t"), is_sql("(VALUES (1))"), is_sql('link("a", y)')
    (True, True, False)
    """
    return any(each.match(text) for each in (SQL_START, _QUESTION_START))


def one_question(
    text: str, parameters: Mapping[str, Any] | None = None
) -> tuple[Any, StatementPlace]:
    """Return the tree of a text that is one question, and the text.

    Raises:
        InputError: it is not one question.
    """
    found: list[tuple[Any, StatementPlace]] = []

    def note(tree: Any, place: StatementPlace, _: object) -> None:
        found.append((tree, place))

    answer_text(text, parameters or {}, None, note, refuse_statements)  # type: ignore[arg-type]
    return found[0]


def refuse_statements() -> None:
    """Refuse statements that are not questions."""
    raise InputError.of(
        "C1378",
        "Only questions can be asked here: SELECT, WITH or VALUES.",
        None,
        "change data with `corollary apply`, in `corollary shell` or with `db.sql(…)`",
    )


def ask_question(
    statement: nodes.QueryStatement, place: StatementPlace, at: object, ask: Ask
) -> SqlAnswer:
    """Answer a question at the point in history that it, or the caller, names.

    Raises:
        InputError: both name one, or the question has no answer.
    """
    version = take_version(statement.query, place)
    if version is not None and at is not None:
        raise InputError.of(
            "C1376",
            "The question names a point in history, and so does the call.",
            statement.span,
            "leave out `at`, or `AS OF`",
        )
    return ask(statement.query, place, at if version is None else version)
