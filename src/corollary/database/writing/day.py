"""The day that `today()` gives: a tuple of a base relation, which users set."""

from datetime import date, datetime

from corollary.analysis.today import TODAY_RELATION
from corollary.core.arrow import to_python
from corollary.core.engine import Engine
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.types import DATE
from corollary.core.values import parse_value, quote_text
from corollary.database.writing.operations import Operation
from corollary.errors import InputError


def read_day(day: object) -> date:
    """Return a day that is given as a date, or as a text such as `2026-11-16`.

    Raises:
        InputError: it is none.
    """
    if isinstance(day, date) and not isinstance(day, datetime):
        return day
    try:
        found = parse_value(day if isinstance(day, str) else "", DATE)
        assert isinstance(found, date)
    except ValueError:
        raise InputError.of(
            "C0908",
            f"{quote_text(str(day))} is not a day.",
            None,
            "write a date such as `2026-11-16`",
        ) from None
    return found


def unset_day() -> InputError:
    """Return the error of a program that asks for the day, which nobody has set."""
    return InputError.of(
        "C0908",
        "The program asks for `today()`, `current_date` in SQL, but no day is set.",
        None,
        "set it with `--today 2026-11-16`, or with `db.set_today(date)` before the program is "
        "loaded; it stays until it is set again",
    )


def day_operations(
    engine: Engine, old: NormalProgram, new: NormalProgram, day: date | None
) -> list[Operation]:
    """Return what puts the day into force that a transaction is to set.

    Raises:
        InputError: the program needs a day, and there is none.
    """
    if TODAY_RELATION not in new.relations:
        return []
    is_known = TODAY_RELATION in old.relations
    before = to_python(engine.read(TODAY_RELATION)) if is_known else []
    if day is None:
        if not before:
            raise unset_day()
        return []
    now = [(day,)]
    if before == now:
        return []
    return [
        Operation(State.REMOVED, TODAY_RELATION, before),
        Operation(State.ADDED, TODAY_RELATION, now),
    ]
