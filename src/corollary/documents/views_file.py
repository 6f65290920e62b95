"""Files of views: a query in each line, perhaps with a name before it."""

import re
from pathlib import Path

from corollary.documents.queries.parse import parse_query
from corollary.errors import Diagnostic, InputError

_NAMED = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*:(?!:)\s*(?P<query>(/|doc\(|collection\().*)")


def read_views(path: Path) -> dict[str, str]:
    """Return the queries of a file by name; one without a name is `view1`, `view2`, … by its line.

    Raises:
        InputError: with all errors of its queries.
    """
    found: dict[str, str] = {}
    findings: list[Diagnostic] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        named = _NAMED.fullmatch(text)
        name, query = (named["name"], named["query"]) if named else (f"view{number}", text)
        try:
            parse_query(query, f"{path.name}:{number}")
        except InputError as error:
            findings += error.diagnostics
        if name in found:
            findings.append(Diagnostic("C1252", f"`{path}` names two views `{name}`."))
        found[name] = query
    if findings:
        raise InputError(findings)
    if not found:
        message = f"`{path}` has no views."
        raise InputError.of("C1252", message, None, "write a query into each line")
    return found
