"""`python -m bench`: run the workloads, print the table, write the JSON."""

import argparse
import cProfile
import pstats
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench import (
    active,
    advisor,
    documents,
    orders,
    replicas,
    report,
    serve,
    spark,
    startup,
    streams,
    subscribers,
    warehouse,
    why,
)
from bench.bulk import load, paths, totals
from bench.changes import rights, small, windows, wire
from bench.contenders import DuckdbQuery, LocalEvaluation
from bench.figure import Figure, as_json
from bench.growth import report as growth
from bench.maintain import recursive_aggregates, run
from bench.maintain import report as maintain_report
from bench.maintain.contenders import CLOCKS
from bench.maintain.task import Task
from bench.maintain.tasks import tasks
from bench.maintain.tracks import Outcome
from bench.measure import Measurement, measure
from bench.pipelines import race as pipelines
from bench.points_to import race as points_to
from bench.report import Result
from bench.shop import race as shop
from bench.tpch import queries as tpch
from bench.tpch import refresh
from bench.workloads import Workload, workloads
from corollary.maintain.choose import SELECTABLE_ALGORITHMS

TOP = 25
REPORTS = {
    each.NAME: (each.ABOUT, each.run)
    for each in (
        shop,
        paths,
        totals,
        startup,
        subscribers,
        warehouse,
        active,
        spark,
        advisor,
        documents,
        orders,
        why,
        points_to,
        recursive_aggregates,
        load,
        refresh,
        growth,
        serve,
        subscribers,
        rights,
        small,
        windows,
        wire,
        pipelines,
        streams,
        replicas,
    )
}
"""What is no race of contenders in this process: figures, by name."""
ON_REQUEST = frozenset(
    each.NAME
    for each in (
        load,
        refresh,
        growth,
        serve,
        subscribers,
        rights,
        windows,
        wire,
        pipelines,
        streams,
        replicas,
    )
)
"""What runs only if `--only` names it."""
SHOP_NEXT = "shop-next"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; return 1 if an answer is wrong, otherwise 0."""
    options = _options(arguments)
    chosen = {each.name: each for each in evaluations(options.scale)}
    maintained = {each.name: each for each in tasks(options.scale)}
    if options.profile in (shop.NAME, SHOP_NEXT):
        shop.profile(options.scale, TOP, is_next=options.profile == SHOP_NEXT)
        return 0
    if options.profile in maintained:
        run.profile(maintained[options.profile], options.algorithm, TOP)
        return 0
    if options.profile:
        profile(chosen[options.profile])
        return 0
    groups = groups_of(maintained.values())
    reports = (name for name in REPORTS if name not in ON_REQUEST)
    asked = options.only or [*chosen, startup.HELP, *maintained, *reports]
    names = list(dict.fromkeys(name for each in asked for name in groups.get(each, (each,))))
    host = report.machine()
    print(f"{host['cores']} cores, load {host['load']:.1f}, {host['versions']}", flush=True)
    others = {*maintained, *REPORTS}
    results = evaluate([name for name in names if name not in others], chosen, options)
    outcomes = maintain([maintained[name] for name in names if name in maintained], options)
    figures = {name: reported(name, options) for name in REPORTS if name in names}
    if options.json:
        listed = [maintain_report.as_json(task, outcome) for task, outcome in outcomes]
        report.write(
            options.json,
            results,
            listed,
            {name: as_json(found) for name, found in figures.items()},
            repeat=options.repeat,
            scale=options.scale,
        )
    is_wrong = any(result.measurement.differences for result in results)
    is_wrong |= any(each.differences for found in figures.values() for each in found)
    return int(is_wrong or any(outcome.differences for _, outcome in outcomes))


def evaluate(
    names: Sequence[str], chosen: Mapping[str, Workload], options: argparse.Namespace
) -> list[Result]:
    """Measure evaluations from scratch, and print a line for each."""
    results: list[Result] = []
    if names:
        print(report.heading(), flush=True)
    for name in names:
        if name == startup.HELP:
            result = start()
        else:
            measurement = compare(chosen[name], options.repeat)
            bar = chosen[name].bar if options.scale == 1 else None
            result = Result(name, chosen[name].about, measurement, bar)
        results.append(result)
        print(report.line(result), flush=True)
    return results


def maintain(chosen: Sequence[Task], options: argparse.Namespace) -> list[tuple[Task, Outcome]]:
    """Measure maintenance, and print a table for each task."""
    outcomes = []
    for task in chosen:
        outcome = run.compare(task, CLOCKS[options.clock])
        lines = maintain_report.lines(task, outcome, with_bars=options.scale == 1)
        print("\n".join(["", *lines]), flush=True)
        outcomes.append((task, outcome))
    if said := maintain_report.choices(outcomes):
        print(f"\n{said}", flush=True)
    return outcomes


def reported(name: str, options: argparse.Namespace) -> list[Figure]:
    """Take the figures of a report, and print a line for each."""
    about, run = REPORTS[name]
    scale = options.scale
    if name == load.NAME and options.rows:
        scale = options.rows / load.ROWS
    print(f"\n{name}: {about}")
    figures = []
    for figure in run(scale):
        print(figure, flush=True)
        figures.append(figure)
    return figures


def evaluations(scale: float = 1.0) -> tuple[Workload, ...]:
    """Return everything that is evaluated from scratch in this process."""
    return (*workloads(scale), *tpch.queries(scale))


def groups_of(maintained: Iterable[Task]) -> dict[str, list[str]]:
    """Return the names of the tasks in each group, and of the queries like those of TPC-H."""
    groups = {tpch.GROUP: [each.name for each in tpch.queries()]}
    for task in maintained:
        groups.setdefault(task.group, []).append(task.name)
    return groups


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    every = tasks()
    names = [*(each.name for each in evaluations()), *(each.name for each in every)]
    runnable = [*names, startup.HELP, *REPORTS, *groups_of(every)]
    parser = argparse.ArgumentParser("bench", description="Measure Corollary against DuckDB.")
    parser.add_argument(
        "--only",
        action="append",
        choices=runnable,
        metavar="NAME",
        help=f"run this one or this group only (may be repeated): {', '.join(runnable)}",
    )
    parser.add_argument("--repeat", type=_count, default=5, metavar="N", help="runs (default 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="times the sizes (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument(
        "--rows",
        type=_count,
        metavar="N",
        help=f"of the file of {load.NAME} (default {load.ROWS:,})",
    )
    parser.add_argument(
        "--profile",
        choices=[*names, shop.NAME, SHOP_NEXT],
        metavar="NAME",
        help=f"profile one workload, the first load of the {shop.NAME} or one more day of it "
        f"({SHOP_NEXT})",
    )
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="what times maintenance (default wall)"
    )
    parser.add_argument(
        "--algorithm",
        choices=SELECTABLE_ALGORITHMS,
        metavar="NAME",
        help="the one to profile a task with",
    )
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def compare(workload: Workload, repeat: int) -> Measurement:
    """Measure one workload: our engine, and DuckDB as a rival or as a referee."""
    relations = workload.relations()
    ours = LocalEvaluation(relations, workload.program, "answer")
    others = [] if workload.sql is None else [DuckdbQuery(relations, workload.sql)]
    if workload.is_race:
        return measure([ours, *others], repeat)
    return measure([ours], repeat, referees=others)


def start() -> Result:
    """Measure `corollary --help`, and see what `import corollary` loads."""
    modules = startup.modules_loaded()
    excess = startup.heavy(modules)
    remark = f"import corollary loads {len(modules)} modules, none of them heavy"
    if excess:
        remark = f"import corollary loads {', '.join(excess)}: too heavy"
    measurement = measure([startup.Help()], startup.HELP_RUNS)
    return Result(startup.HELP, "the command answers", measurement, startup.HELP_BAR, (remark,))


def profile(workload: Workload) -> None:
    """Print where the time of one evaluation goes."""
    contender = LocalEvaluation(workload.relations(), workload.program, "answer")
    contender.ready()
    profiler = cProfile.Profile()
    profiler.runcall(contender.run)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(TOP)


if __name__ == "__main__":
    sys.exit(main())
