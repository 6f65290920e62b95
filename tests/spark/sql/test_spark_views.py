"""SQL views on Spark: Spark's own SQL agrees with the corpus, and the engine maintains views."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from oracles.sql_engines import SparkViews
from support.selection import sampled, seed_of_run
from support.sql.corpus import GRAPHS, RandomTables, corpus, corpus_tables, has_no_cycle
from support.sql.view_judge import SqlOracles, judge_views

FILES = sorted({each.file for each in corpus()})
MAINTAINED = [
    *("joins-full_join", "conditions-truth_tables", "subqueries-not_in_correlated", "bags-product"),
    *(
        "set_operations-except_all",
        "grouping-mixed_distinct",
        "decimals-means",
        "windows-tied_frames",
    ),
    *("layers-layer_union", "strings-likes", "dates-month_arithmetic", "top-top_bag"),
    *("binary-groups_of_bytes", "binary-joined_bytes", "binary-chosen_bytes"),
    *("local_times-grouped_times", "local_times-moved_times"),
    *("floats-single_groups", "floats-single_arithmetic"),
    *("times_of_day-grouped_clocks", "times_of_day-moved_clocks"),
    *("intervals-span_totals", "intervals-moved_spans"),
    *("statistics-spread_of_copies", "statistics-pairs", "statistics-ends_of_join"),
    *("window_frames-without_nulls", "window_frames-near_items"),
    *("sessions-sessions", "sessions-sessions_of_keys"),
]
RECURSIVE = [
    *("organisation-levels", "parts-needed", "reachability-open_ways", "reachability-non_linear"),
    *("reachability-even_ways", "reachability-link_ways", "rights-allowed", "sequences-numbers"),
]
PLACEMENTS = ("driver", "partitions")


@pytest.mark.parametrize("file", sampled(FILES, len(FILES)))
def test_spark_agrees_with_the_corpus(quick: Any, file: str) -> None:
    tables = corpus_tables()
    views = [each for each in corpus() if each.file == file]
    source = RandomTables(tables, f"{file} {seed_of_run()}")
    source.load()
    theirs = SparkViews(quick, tables)
    with closing(SqlOracles(tables, views)) as oracles:
        compare(oracles, theirs, source)


def compare(oracles: SqlOracles, theirs: SparkViews, source: RandomTables) -> None:
    oracles.fill(source.state)
    theirs.fill(source.state)
    for view in oracles.views.values():
        if theirs.name not in view.absent:
            theirs.define(view.name, view.own.get(theirs.name, view.query), view.columns)
            assert theirs.rows(view.name) == oracles.rows(view.name), view.query


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("label", sampled(MAINTAINED, 3 * len(MAINTAINED)))
def test_views_are_maintained_on_spark(spark: Any, label: str, placement: str) -> None:
    view = next(each for each in corpus() if each.label == label)
    options = {"engine": "spark", "spark": spark, "placement": placement}
    judge_views(corpus_tables(), [view], label, changes=2, **options)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("label", sampled(RECURSIVE, 3 * len(RECURSIVE)))
def test_recursive_views_are_maintained_on_spark(spark: Any, label: str, placement: str) -> None:
    view = next(each for each in corpus("recursive") if each.label == label)
    judge_views(
        corpus_tables("recursive_tables.sql"),
        [view],
        label,
        values=GRAPHS,
        accepts=has_no_cycle,
        changes=2,
        engine="spark",
        spark=spark,
        placement=placement,
    )
