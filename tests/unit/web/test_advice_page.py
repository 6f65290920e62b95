"""The page of the advisor: views with their names, and the advice as SQL."""

from __future__ import annotations

from typing import Any

from jinja2 import DictLoader, Environment, FileSystemLoader
from jinja2.loaders import ChoiceLoader

import corollary
from corollary.advisor.consultation import consult
from corollary.advisor.render.json import advice_as_json, advised_sql
from corollary.web.frame import HERE
from corollary.web.wording import FILTERS

PROGRAM = """
.decl e(x: number, y: number)
.decl q(x: number) virtual
q(x) :- e(x, y), e(y, z), e(z, x).
"""


class Visit:
    """What the template asks of a visit."""

    @staticmethod
    def relation_url(name: str) -> str:
        return f"/relation/{name}"


def document() -> dict[str, Any]:
    with corollary.open(None, engine="local") as database:
        database.load(text=PROGRAM)
        found = consult(database, ["q"])
        return advice_as_json(found.advice, sql=advised_sql(found.advice, found.after))


def test_the_page_has_names_and_sql() -> None:
    frame = DictLoader({"base.html": "{% block main %}{% endblock %}"})
    loader = ChoiceLoader([frame, FileSystemLoader(HERE / "templates")])
    environment = Environment(loader=loader, autoescape=True)
    environment.filters |= FILTERS
    page = environment.get_template("advice.html")
    site = {"warehouse": "wh"}
    text = page.render(visit=Visit, may_see=True, advice=document(), error=None, site=site)
    assert '<h3 class="mono">mv_q_1</h3>' in text
    assert "CREATE MATERIALIZED VIEW mv_q_1 AS" in text
    assert "CREATE TABLE mv_q_1 AS" in text
    assert "as SQL for DuckDB" in text
