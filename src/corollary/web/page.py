"""What a page is: a path, a function that answers a visit, and its place in the navigation."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from corollary.data_class import dataclass
from corollary.web.visit import Visit

Show = Callable[[Visit], Awaitable[Response]]
"""Answers a visit."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a part of one that scripts fetch.

    Attributes:
        path: as starlette writes it, such as `/relations/{relation}`.
        show: answers a visit.
        title: in the navigation; empty if it has no place there.
        keys: what takes one there from the keyboard, such as `g m`.
        belongs_to: the title of the page whose place in the navigation is marked; its own if empty.
        methods: of HTTP.
    """

    path: str
    show: Show
    title: str = ""
    keys: str = ""
    belongs_to: str = ""
    methods: tuple[str, ...] = ("GET",)
