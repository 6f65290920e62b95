"""Durable storage: the warehouse, the sources that fill it, and the tables that it publishes.

| package      | what it holds                                                               |
|--------------|-----------------------------------------------------------------------------|
| `catalog`    | the database that says what a warehouse holds; its transactions are commits |
| `files`      | immutable data files, in a directory or an object store; files of users     |
| `formats`    | delimited text, typed values, the entries of a Delta log                    |
| `sources`    | where `.input` takes rows from, and what has changed there                  |
| `publishing` | stored relations as Delta tables                                            |
"""
