"""Maintenance benchmarks: stored views, changed again and again, each change timed.

| file | holds |
|---|---|
| `task.py` | what a task is: data, program, rounds of changes, contenders, bars |
| `contenders.py` | a database with one algorithm, and DuckDB computing anew |
| `turns.py` | the measuring core: contenders take turns, every answer is compared |
| `tracks.py` | what they did: the seconds of every step |
| `answers.py` | how answers are compared |
| `verdicts.py` | whether bars are met |
| `tasks.py` | the tasks: stored closures, growing trees, a join with a sum, groups, auto |
| `run.py` | a task run for its outcome, or for its profile |
| `report.py` | the tables and the JSON |
"""
