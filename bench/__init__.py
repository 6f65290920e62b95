"""Benchmarks: workloads measured against other engines in one run, answers compared.

`python -m bench` runs all of them; `--only`, `--repeat`, `--scale`, `--json` and `--profile` are
explained by `--help`, what is measured by `README.md`. A missed bar is reported; only a wrong
answer fails the run. Here stand the evaluations from scratch, in `maintain` those that change data
and time each transaction.

| file | holds |
|---|---|
| `measure.py` | the measuring core: contenders take turns, medians, answers compared |
| `contenders.py` | Corollary's local engine and DuckDB as contenders |
| `data.py` | generated relations: graphs, trees, sales, a heap |
| `workloads.py` | the workloads, as data |
| `startup.py` | how quickly the command answers, and what `import corollary` loads |
| `report.py` | the table and the JSON |
| `figure.py` | a line of a report that is no race |
| `process.py` | a command in a process of its own: clock, processor, memory |
| `shop/`, `bulk/` | bulk work: a shop, recursion that makes texts, large files, large groups |
| `tpch/` | queries in the manner of TPC-H |
| `changes/` | small changes of SQL views, windows, the PostgreSQL port |
| `warehouse.py` | what lasting costs |
| `active.py` | what monitoring costs, and what each optimisation of it is worth |
| `spark.py`, `rivals.py`, `jobs.py` | what Spark adds, what it does alone, and what jobs cost |
| `maintain/` | stored views under changes: tasks, contenders, turns, verdicts |
"""
