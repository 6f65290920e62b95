"""Widths of columns, shared by tables whose tuples are moved into each other or compared.

A column is as wide as the largest code that a table of the family has held; a family whose layout
has grown is noticed by its tables when they are used next, and they repack. Widths never shrink,
and a width has at most 63 bits, so this happens a few dozen times in the life of a table.
"""

from collections.abc import Sequence

from corollary.engines.local.layout import NARROW_BITS, Codes, Layout, layout_of, width_of


class Family:
    """The layout that some tables share.

    Attributes:
        layout: how their tuples are packed; None once the family has become part of another.
        successor: that other one.
    """

    __slots__ = ("layout", "successor")

    def __init__(self, arity: int) -> None:
        self.layout: Layout | None = layout_of((1,) * arity)
        self.successor: Family | None = None

    @property
    def current(self) -> "Family":
        """The family that this one has become part of, or itself."""
        family = self
        while family.successor is not None:
            family = family.successor
        return family

    def join(self, other: "Family") -> None:
        """Make one family of two."""
        one, two = self.current, other.current
        if one is not two:
            assert two.layout is not None
            one.require(two.layout.widths)
            two.layout, two.successor = None, one

    def require(self, widths: Sequence[int]) -> None:
        """Make the columns at least so wide."""
        assert self.layout is not None
        wider = tuple(map(max, self.layout.widths, widths))
        if wider != self.layout.widths:
            self.layout = layout_of(wider)

    def fit(self, columns: Sequence[Codes], bounds: Sequence[int | None]) -> None:
        """Make the columns wide enough for codes that fit the bounds; None is for not known.

        Where a bound asks for more than there is, it is believed as long as a tuple stays one
        word; after that, the codes themselves are asked.
        """
        assert self.layout is not None
        widths = self.layout.widths
        for at, bound in enumerate(bounds):
            if bound is None or bound > widths[at]:
                break
        else:
            return
        believed = [
            width_of(codes) if bound is None else bound
            for codes, bound in zip(columns, bounds, strict=True)
        ]
        if sum(map(max, widths, believed)) > NARROW_BITS:
            believed = [width_of(codes) for codes in columns]
        self.require(believed)
