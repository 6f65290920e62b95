"""Windows of time: `window(t, '10 minutes', '5 minutes')` becomes the times of its begin and end.

A window begins `pmod(t - offset, slide)` before t, and others at multiples of the slide before it:

    GROUP BY window(t, '1 hour')    GROUP BY t - INTERVAL '0.000001' SECOND * pmod(…)

Where windows overlap, each row is joined to the numbers of those it is in. Rows without a time are
in none. `session_window(t, '5 minutes')` becomes names of times that `session_windows` computes.
"""

from collections.abc import Iterator

from sqlglot import exp

from corollary.data_class import dataclass
from corollary.frontends.sql.binder.context import name_of
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.values.intervals import microseconds_of
from corollary.frontends.sql.parse import rewrite_tree

_NUMBER = "•number"
_WINDOWS = ("window", "session_window")
SESSION = "•session"
"""The source that has the times of a row's session."""
MOMENTS = ("•window", "•session_window")
"""Functions of the time that a window is of, which make a timestamp of it."""
PARTS = ("start", "end")
WINDOWS_MAX = 1000
"""So many windows may have a row."""


@dataclass(frozen=True, slots=True)
class TimeSession:
    """The `session_window(…)` of a SELECT, its time, and its gap as an interval."""

    call: exp.Anonymous
    time: exp.Expr
    gap: exp.Expr


def without_time_windows(
    node: exp.Select, order: exp.Order | None, session: BindingSession
) -> tuple[exp.Select, exp.Order | None, TimeSession | None]:
    """Return a SELECT and its order with the times of windows in place of `window(…)`."""
    calls = list(_calls(node))
    if not calls:
        return node, order, None
    if any(each != calls[0] for each in calls):
        message = "A SELECT has one window of time."
        raise session.error("C1310", message, calls[-1], "group by the other in a query around")
    if name_of(calls[0]) == "session_window":
        gap = _gap(calls[0], session)
        times = dict[str, exp.Expr](
            (each, exp.column(each, table=SESSION, quoted=True)) for each in PARTS
        )
        found = TimeSession(calls[0], _moment(calls[0]), gap)
        return *_with_times(node, order, calls[0], times), found
    time, (duration, slide, offset) = _moment(calls[0]), _read(calls[0], session)
    count = -(-duration // slide)
    if count > WINDOWS_MAX:
        message = f"A row would be in {count} windows."
        raise session.error("C1322", message, calls[0], "slide by longer steps")
    since = exp.Sub(this=_call("unix_micros", time.copy()), expression=_number(offset))
    passed: exp.Expr = _call("pmod", exp.paren(since), _number(slide))
    tests: list[exp.Expr] = [exp.Not(this=exp.Is(this=time.copy(), expression=exp.null()))]
    if count > 1:
        before = exp.Mul(this=exp.column(_NUMBER, quoted=True), expression=_number(slide))
        passed = exp.paren(exp.Add(this=passed, expression=before))
        tests.append(exp.LT(this=passed.copy(), expression=_number(duration)))
    start = exp.paren(exp.Sub(this=time.copy(), expression=_micros(passed)))
    end = exp.paren(exp.Add(this=start.copy(), expression=_micros(_number(duration))))
    select, order = _with_times(node, order, calls[0], {"start": start, "end": end})
    if count > 1:
        rows = [exp.Tuple(expressions=[_number(at)]) for at in range(count)]
        columns = [exp.to_identifier(_NUMBER, quoted=True)]
        alias = exp.TableAlias(this=exp.to_identifier("•windows", quoted=True), columns=columns)
        select.append(
            "joins", exp.Join(this=exp.Values(expressions=rows, alias=alias), kind="CROSS")
        )
    return select.where(*tests, copy=False), order, None


def _with_times(
    node: exp.Select, order: exp.Order | None, call: exp.Anonymous, times: dict[str, exp.Expr]
) -> tuple[exp.Select, exp.Order | None]:
    """Return a SELECT and its order with times in place of what names them."""
    for each in times.values():
        each.meta.update(call.meta)
    kind = name_of(call)
    is_session = kind == "session_window"

    def replaced(part: exp.Expr) -> exp.Expr:
        """Return a time, or both together, for what names them."""
        is_item = part.parent is found and part.arg_key == "expressions"
        named = _named_part(part, kind)
        if named in times:
            return exp.alias_(times[named], named, quoted=True) if is_item else times[named].copy()
        if named is None or isinstance(part.parent, exp.Dot):
            return part
        if part.find_ancestor(exp.Group):
            keys = [times[each].copy() for each in (PARTS if is_session else PARTS[:1])]
            return exp.Tuple(expressions=keys) if is_session else keys[0]
        labels = [each for name in PARTS for each in (exp.Literal.string(name), times[name])]
        both = _call("named_struct", *(each.copy() for each in labels))
        both.meta.update(call.meta)
        return exp.alias_(both, kind) if is_item else both

    found = node.copy()
    if order is not None:
        order = order.copy()
        rewrite_tree(order, replaced)
    for key in ("expressions", "group", "having", "qualify"):
        parts = found.args.get(key)
        for each in parts if isinstance(parts, list) else [parts] if parts else []:
            new = rewrite_tree(each, replaced)
            if new is not each:
                each.replace(new)
    return found, order


def _calls(node: exp.Select) -> Iterator[exp.Anonymous]:
    """Yield the windows of a SELECT, not those of its subqueries."""
    for each in node.walk(prune=lambda part: isinstance(part, exp.Query) and part is not node):
        if isinstance(each, exp.Anonymous) and name_of(each) in _WINDOWS:
            yield each


def _named_part(node: exp.Expr, kind: str) -> str | None:
    """Return `start` or `end` if a node names it, the kind of the window if it is the window."""
    match node:
        case exp.Anonymous() if name_of(node) == kind:
            return kind
        case exp.Column() if node.table.lower() == kind and node.name.lower() in PARTS:
            return node.name.lower()
        case exp.Column() if not node.table and node.name.lower() == kind:
            return kind
        case exp.Dot() if _named_part(node.this, kind) == kind and node.name.lower() in PARTS:
            return node.name.lower()
        case _:
            return None


def _read(call: exp.Anonymous, session: BindingSession) -> tuple[int, int, int]:
    """Return the microseconds of a window's length, of its slide, and where the first begins."""
    amounts = [_length(each) for each in call.expressions[1:]]
    given = [each for each in amounts if each is not None]
    if given and len(given) == len(amounts) <= 3:
        duration, slide, offset = *given, *(given[0], 0)[len(given) - 1 :]
        if 0 < slide <= duration and abs(offset) < slide:
            return duration, slide, offset
    message = "`window` takes a time, and literal lengths: of a window, its slide and its start."
    note = "write `window(t, '10 minutes', '5 minutes', '1 minute')`; a slide is not longer"
    raise session.error("C1306", message, call, note)


def _gap(call: exp.Anonymous, session: BindingSession) -> exp.Expr:
    """Return the gap of a session as an interval."""
    gap = call.expressions[1] if len(call.expressions) == 2 else exp.null()
    micros = microseconds_of(gap.this) if isinstance(gap, exp.Literal) and gap.is_string else None
    if micros is not None and micros > 0:
        return _micros(_number(micros))
    message = "`session_window` takes a time, and a literal gap above 0, of days or less."
    note = (
        "write `session_window(t, '10 minutes')`; for other gaps, number the sessions by a window"
    )
    raise session.error("C1306", message, call, note)


def _length(node: exp.Expr) -> int | None:
    """Return the microseconds that a literal says, as a number or as the text of an interval."""
    if not isinstance(node, exp.Literal):
        return None
    return microseconds_of(node.this) if node.is_string else int(node.this) if node.is_int else None


def _moment(call: exp.Anonymous) -> exp.Expr:
    """Return the time of a window, whatever its type is."""
    time = call.expressions[0]
    found = _call(f"•{name_of(call)}", time.copy())
    found.meta.update(time.meta)
    return found


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _number(value: int) -> exp.Expr:
    return exp.convert(value)


def _micros(count: exp.Expr) -> exp.Expr:
    """Return an interval of so many microseconds."""
    unit = exp.Interval(this=exp.Literal.string("0.000001"), unit=exp.var("SECOND"))
    return exp.Mul(this=unit, expression=count)
