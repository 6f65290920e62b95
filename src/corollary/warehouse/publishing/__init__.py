"""Publishing: stored relations as Delta tables, for every reader that knows Delta.

| module                        | what it knows                                                |
|-------------------------------|--------------------------------------------------------------|
| `publisher`                   | all tables of a warehouse: publish, rebuild, check, clean    |
| `history`                     | what the publisher asks of the warehouse                     |
| `publication`                 | one table, brought to one commit                             |
| `tables`, `clean`             | where tables are, their locks; what none needs any more      |
| `table`, `log`, `swap`        | what a table shows; its log, with suspicion; a new version   |
| `data_files`, `statistics`    | its Parquet files, and their bounds                          |
| `rows`, `names`               | relations, columns and directories in the clothes of Delta   |
"""
