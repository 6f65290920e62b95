"""`corollary advise W --report FILE`: the report that a timer writes."""

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from corollary.advisor import inputs
from corollary.advisor.advice import Advice
from corollary.advisor.cost.view_accounts import ViewAccount, account_views
from corollary.advisor.measured_sizes import measure_sizes
from corollary.advisor.model.scheme import Options
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.advisor.periodic_report import periodic_report, read_state, state_of_advice
from corollary.database.database import Database, state_of


def read_accounts(
    database: Database,
    queries: Iterable[str],
    frequencies: dict[str, float],
    updates: dict[str, float],
) -> list[ViewAccount]:
    """Return what each stored view saves and costs, at the rates of the query log and history."""
    loaded = state_of(database).loaded
    asked = inputs.default_queries(loaded.normal, inputs.read_logged_queries(database), frequencies)
    named = list(queries)
    if named:
        asked = inputs.parse_queries(named, loaded.normal, frequencies)
    rates = {**inputs.measure_update_rates(database), **updates}
    scheme = read_scheme(loaded.program, loaded.checked, asked)
    sizes = measure_sizes(database)
    return list(account_views(scheme, loaded.program, sizes, Options(updates=rates)))


def write_report(
    path: Path, title: str, advice: Advice, database: Database | None, lines: Iterable[str]
) -> None:
    """Write the report, compared with the one that is there."""
    before = None
    with suppress(OSError, UnicodeDecodeError):
        before = read_state(path.read_text(encoding="utf-8"))
    commit = 0 if database is None else database.commits
    accounts = [] if database is None else read_accounts(database, (), {}, {})
    state = state_of_advice(advice, commit, time.time())
    text = periodic_report(title, advice, accounts, lines, state=state, before=before)
    path.write_text(text, encoding="utf-8")
