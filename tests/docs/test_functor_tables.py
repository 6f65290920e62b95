"""The tables of functors in docs/ are what the specifications say.

`COROLLARY_ACCEPT=1` writes them.
"""

from __future__ import annotations

import os
import re

import pytest

from support.functor_tables import bulk_table, language_table
from support.paths import REPOSITORY

SECTIONS = ("numbers", "logic", "base text", "text", "conversions", "casts", "times")


@pytest.mark.parametrize(
    ("page", "section"), [("bulk.md", "all"), *(("language.md", each) for each in SECTIONS)]
)
def test_the_tables_of_functors_are_current(page: str, section: str) -> None:
    path = REPOSITORY / "docs" / page
    lines = bulk_table() if section == "all" else language_table(section)
    table = "\n".join([f"<!-- functors: {section} -->", *lines, "\n"])
    written = path.read_text("utf-8")
    current = re.sub(rf"<!-- functors: {section} -->\n(?:\|.*\n)*\n", lambda _: table, written)
    if os.environ.get("COROLLARY_ACCEPT"):
        path.write_text(current, "utf-8")
    assert table in path.read_text("utf-8")
