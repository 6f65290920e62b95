"""Publishing: stored relations as Delta tables, for every reader that knows Delta.

| module                               | contents                                               |
|--------------------------------------|--------------------------------------------------------|
| `publisher`                          | all tables of a warehouse: publish, rebuild, check     |
| `history`                            | changes and contents of relations, for the publisher   |
| `publication`                        | brings one table to one commit                         |
| `table_directory`                    | where tables are, their locks, removing unused files   |
| `published_table`, `checked_log`     | the state of one table; its log, verified              |
| `delta_commit`                       | makes a new version of a table                         |
| `published_files`                    | its Parquet files: linked, written, rewritten, merged  |
| `delta_schema`, `table_schemas`      | names and types of relations in Delta, of tables       |
"""
