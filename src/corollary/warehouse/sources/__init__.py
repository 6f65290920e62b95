"""Sources: where `.input` takes the rows of a base relation from, and what has changed there.

| module                                     | contents                                      |
|--------------------------------------------|-----------------------------------------------|
| `source_factory`                           | the source of each `.input`                   |
| `source`                                   | the protocol between a run and a source       |
| `file_source`, `file_listing`              | files, folders and patterns of files          |
| `csv_file`, `json_file`, `json_line`,      | one file of each format                       |
| `parquet_file`                             |                                               |
| `file_formats`, `portions`                 | the table of formats; portions of files       |
| `delta_source`, `delta_snapshot`           | Delta tables                                  |
| `sqlite_source`, `spark_source`            | tables of SQLite; whatever Spark reads        |
| `source_spec`                              | the driver of all kinds of sources            |
| `schema_drift`, `quarantine`, `source_keys`| other columns, malformed records, equal keys  |
"""
