"""The codes of diagnostics that the source has."""

import re

from support.paths import REPOSITORY

CASE_PACKAGES = (
    "frontends/datalog",
    "frontends/sql/statements",
    "frontends/sql/lowering",
    "analysis",
)
"""The packages whose codes have a case in `tests/cases/errors`, a cure in `tests/cases/cures`."""
CODE = re.compile(r"C(?:0[1-9]|1[0-9])\d\d")


def codes_in(*packages: str) -> set[str]:
    files = [
        f for name in packages for f in (REPOSITORY / "src" / "corollary" / name).rglob("*.py")
    ]
    return {code for file in files for code in CODE.findall(file.read_text("utf-8"))}
