"""Records as terms: as users write them, and as normal rules compute with them."""

from corollary.core.logic import Functor, Term
from corollary.core.types import NIL, PLAIN_BRANCH

RECORD_OF = "•record"
"""A record of some fields; the first argument is the branch. No user writes it."""

FIELD_OF = "•field"
"""A field of a record, null where the record has another branch: the record, the branch and the
number of the field. No user writes it."""

BRANCH_OF = "•branch"
"""The name of the branch of a record, `nil` for nil. No user writes it."""


def is_record_term(term: Term) -> bool:
    """Whether a term is `[…]`, `nil` or `$Branch(…)`.

    >>> is_record_term(Functor("[]", ())), is_record_term(Functor("cat", ()))
    (True, False)
    """
    return isinstance(term, Functor) and (
        term.name in (PLAIN_BRANCH, NIL) or term.name.startswith("$")
    )
