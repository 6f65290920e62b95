"""Every step of a plan, by small plans made by hand."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.core.logic import Condition, Constant, Functor, Origin, Slot, Variable, Wildcard
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe, Reference
from corollary.core.plans import (
    MAIN,
    Accumulate,
    Add,
    Call,
    CancelOut,
    Clear,
    Derive,
    Extend,
    ExtendWithRound,
    Loop,
    Plan,
    RecordTrace,
    Reduce,
    Remove,
    Step,
    StoreRelation,
    When,
    Within,
)
from corollary.core.program import Relation
from corollary.core.recorder import CountingRecorder, JobRecord
from corollary.core.states import State
from corollary.core.types import FLOAT, NUMBER, SYMBOL, Type
from corollary.engines.local.engine import PREPARED_PLANS_MAX, LocalEngine
from corollary.engines.local.evaluation.stages import DEDUPLICATE_MIN_ROWS
from corollary.errors import EvaluationError, LimitError
from support.selection import examples

OLD, NEW, ADDED, REMOVED = State.OLD, State.NEW, State.ADDED, State.REMOVED
ORIGIN = Origin("a rule made by hand")
Rows = Iterable[tuple[Any, ...]]


class Notes(CountingRecorder):
    """A recorder that writes down what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []
        self.rows: list[Mapping[str, tuple[pa.Table, ...]]] = []

    def procedure(self, name: str) -> None:
        self.heard.append(("begin", name))

    def end(self, name: str, handled: int) -> None:
        self.heard.append(("end", name))

    def step(self, step: Any, size: int, led: int) -> None:
        self.heard.append(("step", step.target, size, led))

    def probe(self, relation: str, rows: int) -> None:
        self.heard.append(("probe", relation, rows))

    def bulk(self) -> None:
        pass

    def job(self, job: JobRecord) -> None:
        self.heard.append(("job", job.sent, job.returned))

    def switch(self, within: Within, rows: int) -> None:
        self.heard.append(("switch", within.about))

    def row(
        self, row: RecordTrace, relations: Mapping[str, tuple[pa.Table, ...]], number: int
    ) -> None:
        self.rows.append(relations)

    def of(self, kind: str) -> list[Any]:
        return [each[1:] for each in self.heard if each[0] == kind]


def variable(name: str, type_: Type = NUMBER) -> Slot:
    return Wildcard() if name == "_" else Variable(name, type_)


def probe(relation: str, names: str, bound: str = "", state: State = NEW) -> Probe:
    """`probe("p", "x y", "x")`: the columns of p are called x and y, and x is known."""
    slots = tuple(variable(name) for name in names.split())
    places = tuple(at for at, name in enumerate(names.split()) if name in bound.split())
    return Probe(Reference(relation, state), slots, places)


def pipeline(head: str, *stages: Any, is_bag: bool = False) -> Pipeline:
    slots = tuple(
        Constant(int(name), NUMBER) if name.lstrip("-").isdigit() else Variable(name, NUMBER)
        for name in head.split()
    )
    return Pipeline(tuple(stages), slots, ORIGIN, is_bag=is_bag)


def copied(target: str, source: str, arity: int, state: State = NEW, without: str = "") -> Derive:
    names = " ".join("xyzuvw"[:arity])
    known = (Reference(without),) if without else ()
    return Derive(target, (pipeline(names, probe(source, names, state=state)),), known)


def types(**arities: int) -> dict[str, tuple[Type, ...]]:
    return {name: (NUMBER,) * arity for name, arity in arities.items()}


def relation(name: str, *kinds: Type) -> Relation:
    return Relation(name, tuple(f"column{at}" for at in range(len(kinds))), kinds, is_derived=False)


def engine_of(**relations: Rows) -> LocalEngine:
    """An engine with relations of numbers, their tuples committed."""
    engine = LocalEngine()
    for name, rows in relations.items():
        listed = list(rows)
        engine.declare({name: relation(name, *((NUMBER,) * len(listed[0])))})
        engine.insert(name, listed)
    engine.commit()
    return engine


def plan(*steps: Step, procedures: Mapping[str, tuple[Step, ...]] | None = None, **kw: Any) -> Plan:
    return Plan({MAIN: steps, **(procedures or {})}, **kw)


def run(engine: LocalEngine, made: Plan, **limits: Any) -> Notes:
    notes = Notes()
    engine.run(made, notes, Limits(**limits))
    return notes


def rows_of(engine: LocalEngine, name: str, state: State = NEW) -> list[tuple[Any, ...]]:
    return sorted(to_python(engine.read(name, state)), key=repr)


def numbers(count: int) -> Rows:
    return [(at,) for at in range(count)]


# --- changing stored relations -----------------------------------------------------------------


def test_remove_grow_and_settle_keep_new_right_in_between() -> None:
    engine = engine_of(p=numbers(6), out=numbers(3), back=[(1,), (9,)], seen=[(-1,)])
    steps: list[Step] = []
    for number, step in enumerate((Remove("p", "out"), Add("p", "back"), CancelOut("p"))):
        steps += [
            step,
            copied("now", "p", 1),
            RecordTrace(str(number), (), (), (), (Reference("now"),)),
        ]
        steps.append(
            RecordTrace("changes", (Reference("p", ADDED),), (), (), (Reference("p", REMOVED),))
        )
    made = plan(*steps, types=types(p=1, out=1, back=1, now=1))
    notes = run(engine, made)

    def column(at: int, key: str) -> set[int]:
        return set(notes.rows[at][key][0].column(0).to_pylist())

    assert [column(at, "actual") for at in (0, 2, 4)] == [
        {3, 4, 5},
        {1, 3, 4, 5, 9},
        {1, 3, 4, 5, 9},
    ]
    assert (column(3, "updates"), column(3, "actual")) == ({1, 9}, {0, 1, 2})
    assert (column(5, "updates"), column(5, "actual")) == ({9}, {0, 2})
    assert rows_of(engine, "p", OLD) == [(at,) for at in range(6)]
    engine.commit()
    assert rows_of(engine, "p", OLD) == rows_of(engine, "p") == [(1,), (3,), (4,), (5,), (9,)]


def test_what_came_back_can_be_removed_again() -> None:
    engine = engine_of(p=numbers(3), one=[(1,)])
    once = (Remove("p", "one"), Add("p", "one"))
    run(engine, plan(*once, Remove("p", "one"), CancelOut("p"), types=types(p=1, one=1)))
    assert rows_of(engine, "p") == [(0,), (2,)]
    assert rows_of(engine, "p", REMOVED) == [(1,)]
    engine.rollback()
    run(engine, plan(*once, *once, CancelOut("p"), types=types(p=1, one=1)))
    assert not engine.size("p", ADDED)
    assert not engine.size("p", REMOVED)


@given(
    keys=st.integers(0, 2),
    additive=st.integers(1, 2),
    changes=st.lists(
        st.dictionaries(
            st.tuples(st.integers(0, 3), st.integers(0, 3)),
            st.tuples(st.integers(-2, 2), st.integers(-(2**40), 2**40)),
            max_size=6,
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_a_change_is_added_key_by_key(
    keys: int, additive: int, changes: list[dict[tuple[int, ...], tuple[int, ...]]]
) -> None:
    """Compared with a dictionary, commit by commit; the first sum of a record is never negative."""
    arity = keys + additive
    engine = LocalEngine()
    shape = {"p": arity, "change": arity, "came": keys, "gone": keys}
    engine.declare({name: relation(name, *((NUMBER,) * size)) for name, size in shape.items()})
    made = plan(Accumulate("p", "change", additive, (), "came", "gone"), types=types(**shape))
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    for change in changes:
        before, rows = dict(known), []
        for key, amounts in {each[:keys]: amounts for each, amounts in change.items()}.items():
            added = amounts[:additive]
            old = known.get(key)
            if old is None and added[0] <= 0:
                added = (1, *added[1:])
            if old is not None and old[0] + added[0] < 0:
                added = (-old[0], *added[1:])
            if not any(added):
                continue
            rows.append((*key, *added))
            total = added if old is None else tuple(map(sum, zip(old, added, strict=True)))
            known[key] = total
            if not total[0]:
                del known[key]
        engine.clear(["change", "came", "gone"])
        engine.insert("change", rows)
        run(engine, made)
        records = {(*key, *total) for key, total in known.items()}
        olds = {(*key, *total) for key, total in before.items()}
        assert set(rows_of(engine, "p")) == records
        assert set(rows_of(engine, "p", ADDED)) == records - olds
        assert set(rows_of(engine, "p", REMOVED)) == olds - records
        assert set(rows_of(engine, "came")) == known.keys() - before.keys()
        assert set(rows_of(engine, "gone")) == before.keys() - known.keys()
        engine.commit()


def test_store_replaces_and_clear_empties() -> None:
    engine = engine_of(p=numbers(3), q=[(2,), (5,)])
    made = plan(
        copied("w", "q", 1),
        copied("v", "q", 1),
        Clear(("v",)),
        copied("u", "v", 1),
        RecordTrace("", (), (), (), (Reference("u"),)),
        StoreRelation("p", "w"),
        types=types(p=1, q=1, w=1, v=1, u=1),
    )
    notes = run(engine, made)
    assert notes.rows[0]["actual"][0].num_rows == 0
    assert rows_of(engine, "p", ADDED) == [(5,)]
    assert rows_of(engine, "p", REMOVED) == [(0,), (1,)]


# --- rounds ------------------------------------------------------------------------------------

EDGES = [(at, at + 1) for at in range(5)] + [(2, 0)]


def test_number_writes_the_round_behind_each_tuple() -> None:
    engine = engine_of(edge=EDGES, start=[(0,)], rank=[(9, 9)])
    step = pipeline("y", probe("seen", "x", state=ADDED), probe("edge", "x y", "x"))
    inner = Loop((copied("once", "once", 1, without="once"),), (Reference("once"),))
    made = plan(
        copied("next", "start", 1),
        Extend("seen", "next"),
        ExtendWithRound("ranked", "next"),
        copied("once", "start", 1),
        Loop(
            (
                Derive("next", (step,), (Reference("seen"),)),
                When((Reference("next"),), (ExtendWithRound("ranked", "next"), inner)),
                Extend("seen", "next"),
                Call("elsewhere"),
            ),
            (Reference("seen", ADDED),),
        ),
        ExtendWithRound("after", "start"),
        StoreRelation("rank", "ranked"),
        procedures={"elsewhere": (copied("w", "start", 1), ExtendWithRound("away", "w"))},
        types=types(
            edge=2, start=1, rank=2, seen=1, next=1, once=1, ranked=2, after=2, away=2, w=1
        ),
    )
    made = plan(
        *made.procedures[MAIN],
        RecordTrace("", (Reference("after"),), (Reference("away"),), (), ()),
        procedures={"elsewhere": made.procedures["elsewhere"]},
        types=made.types,
    )
    notes = run(engine, made)
    assert rows_of(engine, "rank") == [(at, at) for at in range(6)]
    assert to_python(notes.rows[0]["updates"][0]) == [(0, 0)]
    assert to_python(notes.rows[0]["approximation"][0]) == [(0, 0)]


def test_wide_tuples_are_numbered_too() -> None:
    rows = [(-1, 2**40, 7, -9), (3, 4, -5, 6)]
    engine = engine_of(p=rows, rank=[(0, 0, 0, 0, 0)])
    made = plan(
        ExtendWithRound("w", "p"), StoreRelation("rank", "w"), types=types(p=4, rank=5, w=5)
    )
    run(engine, made)
    assert rows_of(engine, "rank") == [(*row, 0) for row in rows]


# --- reductions --------------------------------------------------------------------------------


def reduced(rows: Rows, reduce: Reduce, types_: tuple[Type, ...], without: Rows = ()) -> Any:
    """Reduce rows that come half from one relation and half from another."""
    engine = LocalEngine()
    listed = list(rows)
    engine.declare({name: relation(name, *types_) for name in ("p", "q", "known", "result")})
    engine.insert("p", listed[::2])
    engine.insert("q", listed[1::2])
    engine.insert("known", list(without))
    engine.commit()
    slots = tuple(Variable("xyzu"[at], type_) for at, type_ in enumerate(types_))
    pipelines = tuple(
        Pipeline((Probe(Reference(name), slots, ()),), slots, ORIGIN, is_bag=True)
        for name in ("p", "q")
    )
    step = Derive("w", pipelines, (Reference("known"),), reduce)
    names = ("p", "q", "known", "result", "w")
    run(engine, plan(step, StoreRelation("result", "w"), types=dict.fromkeys(names, types_)))
    return rows_of(engine, "result")


NULLABLE = NUMBER.with_null(True)


def test_min_keeps_the_smallest_of_each_group() -> None:
    rows = [(1, 5), (1, 3), (1, 4), (2, 7), (None, 2), (None, 1), (3, 0), (3, 10**5)]
    found = reduced(rows, Reduce.MIN, (NULLABLE, NUMBER), [(3, 0)])
    assert found == [(1, 3), (2, 7), (3, 10**5), (None, 1)]
    assert reduced([(4,), (2,), (3,)], Reduce.MIN, (NUMBER,)) == [(2,)]
    assert reduced([(1, -1, 4), (1, -1, 2), (2**40, 5, 1)], Reduce.MIN, (NUMBER,) * 3) == [
        (1, -1, 2),
        (2**40, 5, 1),
    ]
    wide = [(-1, -2, -3, 4), (-1, -2, -3, 2), (-1, -2, -4, 3)]
    assert reduced(wide, Reduce.MIN, (NUMBER,) * 4) == [(-1, -2, -3, 2), (-1, -2, -4, 3)]
    assert reduced(wide, Reduce.SUM, (NUMBER,) * 4) == [(-1, -2, -3, 6), (-1, -2, -4, 3)]


def test_sum_counts_every_row_and_leaves_out_zero() -> None:
    rows = [
        (1, 2),
        (1, 2),
        (2, 3),
        (2, -3),
        (None, 4),
        (None, None),
        (3, None),
        (4, 2**40),
        (4, -1),
    ]
    found = reduced(rows, Reduce.SUM, (NULLABLE, NULLABLE), [(1, 2), (None, 4)])
    assert found == [(1, 4), (4, 2**40 - 1)]
    assert reduced([(4,), (5,), (6,)], Reduce.SUM, (NUMBER,)) == [(15,)]
    assert reduced([(4,), (-4,)], Reduce.SUM, (NUMBER,)) == []
    assert reduced([], Reduce.SUM, (NUMBER, NUMBER)) == []
    assert reduced([(1, 2, 0.5), (1, 2, 0.25)], Reduce.SUM, (NUMBER, NUMBER, FLOAT)) == [
        (1, 2, 0.75)
    ]


def counted(engine: LocalEngine, *stages: Any, is_bag: bool = True) -> list[tuple[Any, ...]]:
    step = Derive("w", (pipeline("x 1", *stages, is_bag=is_bag),), reduce=Reduce.SUM)
    run(engine, plan(step, StoreRelation("count", "w"), types=types(p=1, q=3, count=2, w=2)))
    return rows_of(engine, "count")


def test_a_bag_counts_every_way_to_match() -> None:
    engine = engine_of(p=numbers(3), q=[(0, 1, 1), (0, 1, 2), (0, 2, 1), (1, 5, 5)], count=[(9, 9)])
    assert counted(engine, probe("p", "x"), probe("q", "x _ _", "x")) == [(0, 3), (1, 1)]
    assert counted(engine, probe("p", "x"), probe("q", "x _ _", "x"), is_bag=False) == [
        (0, 1),
        (1, 1),
    ]
    assert counted(engine, probe("q", "x _ _")) == [(0, 3), (1, 1)]
    assert counted(engine, probe("p", "x"), probe("p", "_")) == [(0, 3), (1, 3), (2, 3)]
    engine.delete("q", [(0, 1, 2)])
    engine.insert("q", [(1, 6, 6), (1, 6, 7)])
    assert counted(engine, probe("p", "x"), probe("q", "x _ _", "x")) == [(0, 2), (1, 3)]
    assert counted(engine, probe("p", "x"), probe("q", "x y y", "x")) == [(0, 1), (1, 2)]


def test_many_rows_become_few_where_most_are_equal_but_not_in_a_bag() -> None:
    count = 3 * DEDUPLICATE_MIN_ROWS
    engine = engine_of(p=numbers(3), count=[(9, 9)])
    engine.declare({"q": relation("q", NUMBER, NUMBER, NUMBER)})
    at = np.arange(count)
    engine.insert("q", pa.table({"x": at % 5, "y": at // 7, "z": at % 3}))
    engine.commit()
    ways = [(x, 1, len(at[at % 5 == x])) for x in range(5)]
    assert counted(engine, probe("q", "x _ _")) == [(x, many) for x, _, many in ways]
    assert counted(engine, probe("q", "x _ _"), is_bag=False) == [(x, one) for x, one, _ in ways]
    joined = (probe("q", "x _ z"), probe("p", "z", "z"), probe("p", "x", "x"))
    assert counted(engine, *joined) == [(x, many) for x, _, many in ways[:3]]
    assert counted(engine, *joined, is_bag=False) == [(x, 3) for x in range(3)]


def test_a_lenient_bag_counts_no_row_twice() -> None:
    engine = engine_of(q=[(1, 0), (2, 0), (4, 1), (4, 2)], count=[(9, 9)])
    x, y = Variable("x", NUMBER), Variable("y", NUMBER)
    condition = Filter(Condition(">", Functor("/", (x, y), NUMBER), Constant(1, NUMBER)))
    probed = probe("q", "x y")
    body = (probed, condition)
    made = Pipeline(body, (Constant(1, NUMBER),), ORIGIN, body, is_lenient=True, is_bag=True)
    engine.declare({"sum": relation("sum", NUMBER)})
    run(
        engine,
        plan(
            Derive("w", (made,), reduce=Reduce.SUM),
            StoreRelation("sum", "w"),
            types=types(q=2, sum=1, w=1),
        ),
    )
    assert rows_of(engine, "sum") == [(4,)]


# --- procedures --------------------------------------------------------------------------------


def test_procedures_with_locals_call_each_other_deeply() -> None:
    depth = examples(2_000, 20_000)  # more than Python calls into itself
    engine = engine_of(start=[(0,)], seen=[(-1,)])
    x, y = Variable("x", NUMBER), Variable("y", NUMBER)
    below = Filter(Condition("<", x, Constant(depth, NUMBER)))
    plus = Compute(y, Functor("+", (x, Constant(1, NUMBER)), NUMBER))
    made = plan(
        Call("down", "start"),
        StoreRelation("seen", "all"),
        procedures={
            "down": (
                Derive("next", (pipeline("y", probe("here", "x"), below, plus),)),
                When((Reference("next"),), (Call("down", "next"),)),
                Extend("all", "here"),  # here is again what it was before the call
            )
        },
        types=types(start=1, seen=1, here=1, next=1, all=1),
        locals={"down": ("here", "next")},
    )
    notes = run(engine, made)
    assert rows_of(engine, "seen") == sorted(numbers(depth + 1), key=repr)
    assert len(notes.of("begin")) == len(notes.of("end")) == depth + 2


def test_an_argument_may_be_a_local_of_the_same_name() -> None:
    engine = engine_of(start=[(1,), (2,)], seen=[(0,)])
    made = plan(
        copied("here", "start", 1),
        Call("down", "here"),
        copied("w", "here", 1),
        RecordTrace("", (Reference("w"),), (), (), ()),
        StoreRelation("seen", "all"),
        procedures={
            "down": (
                copied("fresh", "here", 1, without="all"),
                Extend("all", "fresh"),
                When((Reference("fresh"),), (Call("down", "here"),)),
                Clear(("here",)),
            )
        },
        types=types(start=1, seen=1, here=1, all=1, fresh=1, w=1),
        locals={"down": ("here",)},
    )
    notes = run(engine, made)
    assert rows_of(engine, "seen") == [(1,), (2,)]
    assert notes.rows[0]["updates"][0].num_rows == 2


# --- budgets -----------------------------------------------------------------------------------


def product(target: str) -> Derive:
    return Derive(target, (pipeline("x y", probe("p", "x"), probe("p", "y")),))


def result(name: str) -> tuple[Step, ...]:
    return (Clear(("w",)), copied("w", name, 1), StoreRelation("out", "w"))


def test_steps_over_their_budget_are_given_up() -> None:
    engine = engine_of(p=numbers(100), out=[(-1,)], small=[(1,)], large=[(2,)])
    inside = (Call("work", "p"), *result("small"))
    made = plan(
        copied("arg", "small", 1),
        Within(1000, inside, result("large"), "the view"),
        copied("left", "arg", 1),
        RecordTrace("", (Reference("left"),), (), (), ()),
        procedures={"work": (copied("more", "arg", 1), product("pairs"))},
        types=types(p=1, out=1, small=1, large=1, w=1, arg=1, more=1, left=1, pairs=2),
        locals={"work": ("arg", "more")},
    )
    notes = run(engine, made)
    assert rows_of(engine, "out") == [(2,)]
    assert notes.of("switch") == [("the view",)]
    assert notes.of("end") == [("work",), (MAIN,)]
    assert to_python(notes.rows[0]["updates"][0]) == [(1,)]
    enough = plan(Within(100_000, inside, result("large")), **_rest(made))
    notes = run(engine, enough)
    assert rows_of(engine, "out") == [(1,)]
    assert not notes.of("switch")


def _rest(made: Plan) -> dict[str, Any]:
    procedures = {name: steps for name, steps in made.procedures.items() if name != MAIN}
    return {"procedures": procedures, "types": made.types, "locals": made.locals}


def test_budgets_nest() -> None:
    engine = engine_of(p=numbers(100), out=[(-1,)], small=[(1,)], large=[(2,)])
    all_types = types(p=1, out=1, small=1, large=1, w=1, pairs=2)
    heavy = (product("pairs"),)
    inner = Within(500, heavy, result("small"), "inner")
    notes = run(engine, plan(Within(50_000, (inner,), result("large"), "outer"), types=all_types))
    assert notes.of("switch") == [("inner",)]
    assert rows_of(engine, "out") == [(1,)]
    # What stands in for the inner steps counts for the outer ones; one's own budget is over.
    inner = Within(500, heavy, (product("pairs"), product("pairs")), "inner")
    notes = run(engine, plan(Within(25_000, (inner,), result("large"), "outer"), types=all_types))
    assert notes.of("switch") == [("inner",), ("outer",)]
    assert rows_of(engine, "out") == [(2,)]
    # Both at once: the outer one decides.
    inner = Within(500, heavy, result("small"), "inner")
    notes = run(engine, plan(Within(600, (inner,), result("large"), "outer"), types=all_types))
    assert notes.of("switch") == [("outer",)]
    # The budget is over when the steps are.
    made = plan(Within(500, result("small"), None), *heavy, types=all_types)
    assert not run(engine, made).of("switch")


def test_a_budget_without_a_substitute_fails() -> None:
    engine = engine_of(p=numbers(100), out=[(-1,)], small=[(1,)])
    made = plan(
        *result("small"),
        Within(500, (product("pairs"),), None, "reachable"),
        types=types(p=1, out=1, small=1, w=1, pairs=2),
    )
    with pytest.raises(LimitError, match=r"(?s)`reachable`.*--strict"):
        run(engine, made)
    assert rows_of(engine, "out") == [(-1,)]
    assert not engine.size("out", ADDED)


@pytest.mark.parametrize(
    ("budget", "outset", "is_given_up"),
    [(1000, None, True), (100_000, 20, True), (1000, 500, True), (100_000, 500, False)],
)
def test_a_loop_is_left_in_mid_round(budget: int, outset: int | None, is_given_up: bool) -> None:
    # A round handles 100 rows or so, and there are 50.
    engine = engine_of(
        edge=[(at, (at + 1) % 50) for at in range(50)], out=[(0,)], small=[(1,)], large=[(2,)]
    )
    closure = pipeline("x z", probe("tc", "x y", state=ADDED), probe("edge", "y z", "y"))
    made = plan(
        copied("next", "edge", 2),
        Extend("tc", "next"),
        Within(
            budget,
            (
                *result("small"),
                Loop(
                    (Derive("next", (closure,), (Reference("tc"),)), Extend("tc", "next")),
                    (Reference("tc", ADDED),),
                ),
            ),
            result("large"),
            "closure",
            outset,
        ),
        types=types(edge=2, out=1, small=1, large=1, next=2, tc=2, w=1),
    )
    assert run(engine, made).of("switch") == [("closure",)] * is_given_up
    assert rows_of(engine, "out") == [(2,) if is_given_up else (1,)]


# --- failures ----------------------------------------------------------------------------------


def test_a_failure_leaves_only_the_changes_of_the_caller() -> None:
    engine = engine_of(
        p=numbers(3), q=numbers(3), r=numbers(3), s=numbers(3), one=[(1,)], two=[(7,)]
    )
    x = Variable("x", NUMBER)
    bad = Functor("/", (x, Constant(0, NUMBER)), NUMBER)
    body = (probe("one", "x"), Filter(Condition("=", bad, x)))
    failing = Pipeline(body, (x,), ORIGIN, body)
    engine.insert("one", [(2,)])
    made = plan(
        copied("w", "two", 1),
        StoreRelation("p", "w"),
        Remove("q", "one"),
        Add("r", "two"),
        CancelOut("r"),
        Call("deep", "two"),
        procedures={"deep": (Derive("w", (failing,)),)},
        types=types(p=1, q=1, r=1, one=1, two=1, w=1, local=1),
        locals={"deep": ("local",)},
    )
    for _ in range(2):
        with pytest.raises(EvaluationError, match="division by zero"):
            run(engine, made)
        for name in ("p", "q", "r", "s"):
            assert rows_of(engine, name) == rows_of(engine, name, OLD) == list(numbers(3))
        assert rows_of(engine, "one", ADDED) == [(2,)]
    engine.rollback()
    assert rows_of(engine, "one") == [(1,)]


# --- the record --------------------------------------------------------------------------------


def test_the_recorder_hears_of_steps_and_lookups() -> None:
    engine = engine_of(p=numbers(4), edge=EDGES)
    engine.insert("p", [(4,)])
    made = plan(
        Derive(
            "w",
            (
                pipeline("y", probe("p", "x", state=ADDED), probe("edge", "x y", "x", OLD)),
                pipeline(
                    "x",
                    probe("p", "x"),
                    AntiProbe(Reference("edge"), (Variable("x", NUMBER), Constant(1, NUMBER))),
                ),
                pipeline("7"),
            ),
        ),
        copied("v", "w", 1),
        types=types(p=1, edge=2, w=1, v=1),
    )
    notes = run(engine, made)
    assert notes.of("step") == [("w", 6, 6), ("v", 6, 6)]
    looked_up = Counter[str]()
    for name, rows in notes.of("probe"):
        looked_up[name] += rows
    assert looked_up == {"edge": 6, "p": 1}
    assert notes.of("begin") == notes.of("end") == [(MAIN,)]


def test_a_row_reads_working_and_stored_relations() -> None:
    engine = engine_of(p=[(1, 2)])
    row = RecordTrace("r1", (Reference("p", OLD), Reference("w")), (), (Reference("p", ADDED),), ())
    notes = run(engine, plan(copied("w", "p", 2), row, types=types(p=2, w=2)))
    (found,) = notes.rows
    assert list(found) == ["updates", "approximation", "disqualified", "actual"]
    assert [table.column_names for table in found["updates"]] == [
        ["column0", "column1"],
        ["c0", "c1"],
    ]
    assert found["disqualified"][0].num_rows == 0


# --- the engine's own part ---------------------------------------------------------------------


@pytest.mark.parametrize("as_arrow", [False, True])
def test_insertions_and_deletions_are_one_change(as_arrow: bool) -> None:
    engine = engine_of(p=[(at, at) for at in range(5)])

    def given(*rows: tuple[int, int]) -> Any:
        if not as_arrow:
            return list(rows)
        return pa.table({"x": [row[0] for row in rows], "y": [row[1] for row in rows]})

    engine.delete("p", given((1, 1), (2, 2), (8, 8)))
    engine.insert("p", given((1, 1), (6, 6), (7, 7), (0, 0)))
    engine.delete("p", given((7, 7), (3, 3), (-5, 2**50)))
    assert rows_of(engine, "p") == [(0, 0), (1, 1), (4, 4), (6, 6)]
    assert rows_of(engine, "p", ADDED) == [(6, 6)]
    assert rows_of(engine, "p", REMOVED) == [(2, 2), (3, 3)]
    engine.rollback()
    assert rows_of(engine, "p") == [(at, at) for at in range(5)]


def test_what_is_kept_stays_as_it_was() -> None:
    engine = engine_of(p=numbers(4))
    engine.delete("p", [(1,)])
    engine.insert("p", [(10,)])
    kept = {state: engine.handle("p", state) for state in State}
    expected = {state: rows_of(engine, "p", state) for state in State}
    engine.commit()
    engine.insert("p", [(2**40,), (-3,)])
    engine.delete("p", [(0,), (10,)])
    engine.commit()
    for state in State:
        assert len(kept[state]) == len(expected[state])
        assert sorted(to_python(kept[state].table()), key=repr) == expected[state]
    assert kept[NEW].table().column_names == ["column0"]


def test_relations_are_copied_renamed_and_dropped() -> None:
    engine = engine_of(p=[(1, 2), (3, 4)], q=[(9, 9)])
    engine.insert("p", [(5, 6)])
    engine.copy("p", "q")
    assert rows_of(engine, "q") == rows_of(engine, "q", OLD) == [(1, 2), (3, 4), (5, 6)]
    made = plan(copied("w", "p", 2), StoreRelation("q", "w"), types=types(p=2, q=2, w=2))
    run(engine, made)
    engine.declare({"other": relation("other", NUMBER)})
    assert len(engine._prepared) == 1
    engine.rename("p", "r")
    assert not engine._prepared
    engine.drop(["q", "other"])
    engine.declare({"p": relation("p", NUMBER, NUMBER), "q": relation("q", NUMBER, NUMBER)})
    run(engine, made)
    assert rows_of(engine, "q") == []
    assert len(rows_of(engine, "r")) == 3


def test_a_plan_runs_again_from_empty_working_relations() -> None:
    engine = engine_of(p=numbers(3), total=[(0,)])
    made = plan(
        copied("next", "p", 1, without="all"),
        Extend("all", "next"),
        copied("w", "all", 1),
        StoreRelation("total", "w"),
        types=types(p=1, total=1, next=1, all=1, w=1),
    )
    for count in range(3, 6):
        engine.insert("p", [(count,)])
        run(engine, made)
        engine.commit()
        assert rows_of(engine, "total") == list(numbers(count + 1))
    others = [
        plan(copied("next", "p", 1), types=types(p=1, next=1))
        for _ in range(2 * PREPARED_PLANS_MAX)
    ]
    for other in others:
        run(engine, other)
    assert len(engine._prepared) == PREPARED_PLANS_MAX
    run(engine, made)
    assert engine.size("total") == 6


def test_symbols_are_read_where_columns_have_no_name() -> None:
    engine = LocalEngine()
    engine.declare({"p": relation("p", SYMBOL.with_null(True), FLOAT)})
    engine.insert("p", [("a", 1.0), (None, 2.0)])
    x, y = Variable("x", SYMBOL.with_null(True)), Variable("y", FLOAT)
    step = Derive("w", (Pipeline((Probe(Reference("p"), (x, y), ()),), (y, x), ORIGIN),))
    made = plan(
        step,
        RecordTrace("", (Reference("w"),), (), (), ()),
        types={"p": (SYMBOL.with_null(True), FLOAT), "w": (FLOAT, SYMBOL.with_null(True))},
    )
    (found,) = run(engine, made).rows
    assert sorted(to_python(found["updates"][0])) == [(1.0, "a"), (2.0, None)]


@pytest.mark.slow
def test_many_small_transactions_stay_cheap() -> None:
    """What a transaction costs does not depend on how many there were: few runs, few layers."""
    engine = engine_of(edge=[(at, at + 1) for at in range(20_000)], out=[(-1, -1)])
    follow = pipeline("x z", probe("edge", "x y", state=ADDED), probe("edge", "y z", "y"))
    back = pipeline("x z", probe("edge", "y z", state=ADDED), probe("edge", "x y", "y"))
    made = plan(
        Derive("w", (follow, back), (Reference("out"),)),
        Add("out", "w"),
        types=types(edge=2, out=2, w=2),
        orders={"edge": ((0, 1), (1, 0))},
    )
    model = {(at, at + 1) for at in range(20_000)}
    out = {(-1, -1)}
    for at in range(examples(500, 2_000)):
        new, gone = (at, 30_000 + at % 50), (at * 3, at * 3 + 1)
        engine.delete("edge", [gone])
        engine.insert("edge", [new])
        run(engine, made)
        engine.commit()
        model = (model - {gone}) | {new}
        out |= {(x, new[1]) for x in range(max(0, at - 1), at) if (x, at) in model}
    table = engine._tables["edge"]
    for order in ((0, 1), (1, 0)):
        assert len(table.arrangement(order).layers(OLD)) <= 4
    assert set(rows_of(engine, "edge")) == model
    assert set(rows_of(engine, "out")) == out
