"""What one types above the page: the name of a relation, a tuple, a goal, or a question in SQL."""

import re

from starlette.responses import Response

from corollary.serve.requests import RelationsRequest
from corollary.web.rule_text import arguments_of
from corollary.web.visit import Page, Visit

SQL = re.compile(r"(select|with|values)\b", re.IGNORECASE)
ATOM = re.compile(r"\s*([^\s(]+)\s*\((.*)\)\s*\.?\s*", re.DOTALL)
VALUE = re.compile(r"""[dt]?".*"|-?\d[\w.+-]*|true|false|null""", re.DOTALL)


async def show_answer(visit: Visit) -> Response:
    """Lead to where the question is answered."""
    text = visit.parameters.get("q", "").strip()
    if not text:
        return visit.redirect(visit.url("/"))
    found = await visit.ask(RelationsRequest(at=visit.at))
    names = {each["name"] for each in found["relations"]}
    if text in names:
        return visit.redirect(visit.relation_url(text))
    atom = ATOM.fullmatch(text)
    if atom and atom[1].strip("`") in names:
        arguments = arguments_of(atom[2])
        if arguments and all(VALUE.fullmatch(each) for each in arguments):
            return visit.redirect(visit.relation_url(atom[1].strip("`"), tuple=text.rstrip(". ")))
    if atom or SQL.match(text) or "(" in text:
        return visit.redirect(visit.url("/console", q=text))
    return visit.redirect(visit.url("/relations", q=text))


PAGES = (Page("/ask", show_answer),)
