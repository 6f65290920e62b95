"""`.input` and `.output` through Spark (`IO=spark`): our parameters, and the options of Spark.

| parameter     | of       | meaning                                                              |
|---------------|----------|----------------------------------------------------------------------|
| `format`      | both     | the argument of `spark.read.format` or `write.format`                |
| `filename`    | both     | a file, folder or pattern, relative as for other files               |
| `table`       | both     | instead: a table, or for `.input` a temp view, of the session        |
| `order`       | `.input` | as for files                                                         |
| `new_columns` | `.input` | as for files                                                         |
| `max_bad`, `max_deletes` | `.input` | as for files                                              |
| `mode`        | `.output`| `error`, `append`, `overwrite`, `ignore`; of `.input` Spark's option |
| all others    | both     | options of Spark's reader or writer                                  |
"""

import re

from corollary.core.program import Directive

SPARK = "spark"
OWN_PARAMETERS = {
    "input": (
        "IO",
        "format",
        "filename",
        "table",
        "order",
        "new_columns",
        "max_bad",
        "max_deletes",
    ),
    "output": ("IO", "format", "filename", "table", "mode"),
}
"""Our own parameters; all others are options of Spark."""

TEXT_FORMATS = ("csv", "json")
"""Formats whose values are text, which is converted as in our own files."""

CORRUPT_COLUMN = "_corrupt_record"
"""The column in which Spark's JSON reader puts malformed records."""


def is_spark_io(directive: Directive) -> bool:
    """Whether Spark reads or writes the data of a directive."""
    return directive.name in OWN_PARAMETERS and directive.parameter("IO") == SPARK


def spark_options(directive: Directive) -> dict[str, str]:
    """Return the options of Spark's reader or writer.

    >>> spark_options(Directive("input", "p", (("IO", "spark"), ("format", "csv"), ("sep", ";"))))
    {'sep': ';'}
    """
    own = OWN_PARAMETERS[directive.name]
    return {name: value for name, value in directive.parameters if name not in own}


def display_name(directive: Directive) -> str:
    """Return a name for messages of what is read or written, without passwords.

    >>> url = "jdbc:postgresql://me:secret@host/shop?password=secret"
    >>> display_name(
    ...     Directive("input", "p", (("format", "jdbc"), ("url", url), ("dbtable", "item")))
    ... )
    'jdbc item of jdbc:postgresql:host/shop'
    """
    if table := directive.parameter("table"):
        return f"table {table}"
    if name := directive.parameter("filename"):
        return name
    options = {name.lower(): value for name, value in directive.parameters}
    table = options.get("dbtable") or options.get("query") or ""
    # JDBC URLs may hold a password before the host, or in properties after `?` or `;`.
    url = re.sub(r"//([^/@]*@)?", "", re.split(r"[?;]", options.get("url", ""))[0])
    return " ".join(filter(None, (options.get("format"), table, url and f"of {url}")))
