"""Sources: where `.input` takes the rows of a base relation from, and what has changed there.

| module                                 | what it knows                                |
|----------------------------------------|----------------------------------------------|
| `choose`                               | which source an `.input` names               |
| `source`                               | what a run asks of a source, and gets        |
| `file_source`, `listing`               | files, folders and patterns of files         |
| `csv_file`, `json_file`, `json_line`,  | one file of each format                      |
| `json_fast`, `parquet_file`            |                                              |
| `delta_source`, `delta_log`            | Delta tables                                 |
| `spark_source`                         | whatever Spark reads                         |
| `inlet`                                | what the kinds of sources share              |
| `typed`                                | values of formats that have their own types  |
| `drift`, `quarantine`, `keys`          | other columns, malformed records, equal keys |
"""
