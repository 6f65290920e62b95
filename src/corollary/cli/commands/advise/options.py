"""The options of `corollary advise`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from corollary.cli.options import EngineOption, LimitOptions
from corollary.cli.parameters import FLAG, POSITIVE, byte_count, choice, option, place
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from corollary.warehouse.files.places import Place

UNIT_HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}


def hourly_rate(text: str) -> tuple[str, float]:
    """Return the name and the number in an hour of NAME=NUMBER/UNIT.

    >>> hourly_rate("services=24/d")
    ('services', 1.0)
    """
    name, _, rate = text.partition("=")
    number, _, unit = rate.partition("/")
    try:
        value = float(number) / UNIT_HOURS[unit or "h"]
    except (KeyError, ValueError):
        value = -1.0
    if not name or not 0 <= value < float("inf"):
        raise click.BadParameter(
            f"'{text}' is not a name and a rate; write services=1000/h, with /s, /min, /h or /d"
        )
    return name, value


Rates = tuple[tuple[str, float], ...]
RATES = {"multiple": True, "type": hourly_rate, "allow_from_autoenv": False}


@dataclass(frozen=True)
class AdviseOptions(EngineOption, LimitOptions):
    """What is advised on, with which data, and what is done with the advice."""

    queries: Annotated[
        tuple[str, ...],
        "A query to make quicker; ^bf says which columns are given. May be repeated. Default: "
        "what was asked of the warehouse, or what no other relation reads.",
        option("--query", metavar="RELATION[^bf]", multiple=True),
    ]
    queries_from: Annotated[
        Path | None,
        "A log of SQL queries to make quicker: SELECT statements, each ended by a semicolon. How "
        "often one is there is how often it is asked in an hour.",
        option(metavar="FILE.sql", type=click.Path(path_type=Path, exists=True, dir_okay=False)),
    ]
    stats: Annotated[
        str | None,
        "Whose sizes, query log and history are to be used.",
        option(metavar="WAREHOUSE"),
    ]
    facts: Annotated[
        "Place | None",
        "Directory of the facts files, to measure sizes without a warehouse.",
        option("-F", "--facts", type=place, metavar="DIRECTORY"),
    ]
    budget: Annotated[
        float | None,
        "The space that all new views together may take, such as 2GB.",
        option(
            metavar="SIZE", type=byte_count(1000, "is not a number of bytes; write 500MB or 2GB")
        ),
    ]
    updates: Annotated[
        Rates,
        "Changed tuples of a base relation. May be repeated.",
        option(**RATES, metavar="RELATION=N/h"),
    ]
    frequency: Annotated[
        Rates, "How often a query is asked. May be repeated.", option(**RATES, metavar="QUERY=N/h")
    ]
    selection: Annotated[
        str | None,
        "The smallest set of views that gains as much as all; the paper's; or what the whole "
        "workload is worth within the budget. Default: minimal, or budget if there is one.",
        option(type=click.Choice(["minimal", "paper", "budget"])),
    ]
    scope: Annotated[
        str,
        "Whether all stored relations set how large a view may be, or those that queries read.",
        choice("scheme", "used"),
    ]
    opaque: Annotated[
        str,
        "Whether simple comparisons stay in the rules or may move into views.",
        choice("opaque", "absorb"),
    ]
    partial_clusters: Annotated[
        bool | None,
        "Whether parts of groups that are too large are looked at. Default: yes, but not with "
        "--selection paper.",
        option("--partial-clusters/--whole-clusters", default=None),
    ]
    self_materialisation: Annotated[
        str, "Whether a view may be the query itself.", choice("allow", "forbid")
    ]
    keys: Annotated[bool, "Propose keys that the data suggests.", FLAG]
    sample: Annotated[
        float | None,
        "Compute the new views for this share of the values of a column, to estimate sizes.",
        option(metavar="P", type=click.FloatRange(0, 1, min_open=True)),
    ]
    verify: Annotated[bool, "Show that the rewritten queries answer the same.", FLAG]
    measure: Annotated[
        bool, "Time the queries before and after, on copies: the processor time.", FLAG
    ]
    limit_steps: Annotated[
        int,
        "End the search for views after this many steps, with the best that was found until then.",
        option(type=POSITIVE, default=2_000_000, show_default=True),
    ]
    apply: Annotated[
        str | None,
        "Store the views there and rewrite its rules.",
        option(metavar="WAREHOUSE", allow_from_autoenv=False),
    ]
    revert: Annotated[
        str | None,
        "Take back what --apply did there last.",
        option(metavar="WAREHOUSE", allow_from_autoenv=False),
    ]
    drop: Annotated[
        str | None,
        "List the stored views there that cost more than they save.",
        option(metavar="WAREHOUSE"),
    ]
    names: Annotated[
        tuple[str, ...],
        "The name of a new view. May be repeated: in the order in which views are printed.",
        option("--name", metavar="NAME", multiple=True),
    ]
    sql: Annotated[
        str | None,
        "Print the new views and the rewritten queries as SQL of this engine.",
        option(type=click.Choice(["spark", "duckdb"])),
    ]
    trace: Annotated[
        bool, "Print each phase of the algorithm, with the materialisation trees.", FLAG
    ]
    trace_to: Annotated[
        Path | None,
        "Write the phases and trees there: as a drawing if it ends in .svg, as text otherwise.",
        option(metavar="FILE", type=click.Path(path_type=Path, dir_okay=False)),
    ]
    report: Annotated[
        Path | None,
        "Write the advice there as a report (Markdown), with what is new since the report that is "
        "there: for a timer.",
        option(metavar="FILE", type=click.Path(path_type=Path, dir_okay=False)),
    ]
    to: Annotated[
        Path | None,
        "Write the new program there: as rules, or as SQL if it ends in .sql.",
        option(type=click.Path(path_type=Path, dir_okay=False)),
    ]
