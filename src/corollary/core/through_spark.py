"""`.input` and `.output` through Spark (`IO=spark`): what is said to us, and what to Spark.

| parameter     | of       | meaning                                                              |
|---------------|----------|----------------------------------------------------------------------|
| `format`      | both     | what `spark.read.format` or `write.format` takes                     |
| `filename`    | both     | a file, folder or pattern, where other files are                     |
| `table`       | both     | instead: a table, or for `.input` a temp view, of the session        |
| `order`       | `.input` | as for files                                                         |
| `new_columns` | `.input` | as for files                                                         |
| `mode`        | `.output`| `error`, `append`, `overwrite`, `ignore`; of `.input` Spark's option |
| all others    | both     | options of Spark's reader or writer                                  |
"""

import re

from corollary.core.program import Directive

SPARK = "spark"
OWN = {
    "input": ("IO", "format", "filename", "table", "order", "new_columns"),
    "output": ("IO", "format", "filename", "table", "mode"),
}
"""What is said to us; everything else is said to Spark."""

TEXTS = ("csv", "json")
"""Formats whose values are texts, which are read as those of our own files are."""

CORRUPT = "_corrupt_record"
"""The column in which Spark's reader of JSON puts records that are none."""


def is_through_spark(directive: Directive) -> bool:
    """Return whether Spark reads or writes what a directive names."""
    return directive.name in OWN and directive.parameter("IO") == SPARK


def options_of(directive: Directive) -> dict[str, str]:
    """Return the options of Spark's reader or writer.

    >>> options_of(Directive("input", "p", (("IO", "spark"), ("format", "csv"), ("sep", ";"))))
    {'sep': ';'}
    """
    return {name: value for name, value in directive.parameters if name not in OWN[directive.name]}


def called(directive: Directive) -> str:
    """Return what messages call the thing that is read or written: no passwords are in it.

    >>> url = "jdbc:postgresql://me:secret@host/shop?password=secret"
    >>> called(Directive("input", "p", (("format", "jdbc"), ("url", url), ("dbtable", "item"))))
    'jdbc item of jdbc:postgresql:host/shop'
    """
    if table := directive.parameter("table"):
        return f"table {table}"
    if name := directive.parameter("filename"):
        return name
    said = {name.lower(): value for name, value in directive.parameters}
    what = said.get("dbtable") or said.get("query") or ""
    url = re.sub(r"//([^/@]*@)?", "", re.split(r"[?;]", said.get("url", ""))[0])
    return " ".join(filter(None, (said.get("format"), what, url and f"of {url}")))
