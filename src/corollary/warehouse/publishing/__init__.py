"""Publishing: stored relations as Delta tables, and as replicas in other systems.

| module                               | contents                                               |
|--------------------------------------|--------------------------------------------------------|
| `outputs`                            | all that is published, brought forward one by one      |
| `replica`, `replica_outputs`         | replicas follow their relations; those of a program    |
| `postgresql_replica`                 | tables of PostgreSQL                                   |
| `iceberg_replica`, `kafka_replica`   | tables of Iceberg, topics of Kafka                     |
| `connections`                        | where replicas are, from the environment               |
| `publisher`                          | all Delta tables: publish, rebuild, check              |
| `history`                            | changes and contents of relations, for the publisher   |
| `publication`                        | brings one table to one commit                         |
| `table_directory`                    | where tables are, their locks, removing unused files   |
| `published_table`, `checked_log`     | the state of one table; its log, verified              |
| `delta_commit`                       | makes a new version of a table                         |
| `published_files`                    | its Parquet files: linked, written, rewritten, merged  |
| `delta_schema`, `table_schemas`      | names and types of relations in Delta, of tables       |
"""
