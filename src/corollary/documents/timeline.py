"""The state of a view over time: its value, its answers, and since when an answer is open."""

from dataclasses import field

from corollary.data_class import dataclass
from corollary.documents.answers.unknown import ANY, Answer
from corollary.documents.queries.comparisons import number_of
from corollary.documents.view import View
from corollary.drawing.svg import document, element, escape_text, path

START = "start"
"""When the document was there, and no update had come."""
WIDTH, HEIGHT, MARGIN, BAND = 720, 260, 48, 14
VALUES = {1.0: ("#2a7f4f", "true"), 0.5: ("#d9a520", "may become true"), 0.0: ("#b03a2e", "false")}
LINES = (("sure", "#2a7f4f"), ("possible", "#d9a520"))


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """The state of a view after an update.

    Attributes:
        at: when the update was.
        what: the function, and whether it has brought something or has ended.
        value: the truth of the view.
        sure, possible: how many answers are sure, and possible.
    """

    at: str
    what: str
    value: float
    sure: int
    possible: int


@dataclass(frozen=True, slots=True)
class OpenAnswer:
    """An answer that may come: what it waits for, and since when.

    Attributes:
        answer: what is known of it.
        waits_for: the least sets of functions of which one has to bring something.
        since: the update after which it was possible for the first time.
    """

    answer: Answer
    waits_for: tuple[frozenset[str], ...]
    since: str


@dataclass(frozen=True, slots=True)
class AwaitedFunction:
    """A function that open answers wait for.

    Attributes:
        function: its name.
        order: its position among those to be asked: 1 is the one to ask first.
        alone: how many open answers it can bring about by itself.
        answers: how many it can bring about, by itself or with others.
        since: the update after which the oldest of them was possible for the first time.
    """

    function: str
    order: int
    alone: int
    answers: int
    since: str


@dataclass(slots=True)
class ViewTimeline:
    """Follows a view through updates; `note` is called after each of them.

    Attributes:
        view: the view.
        steps: its states.
        since: for each possible answer the update after which it was one for the first time.
    """

    view: View
    steps: list[TimelineStep] = field(default_factory=list)
    since: dict[Answer, str] = field(default_factory=dict)

    def note(self, at: str, what: str) -> None:
        """Note the state after an update."""
        view = self.view
        possible = view.possible()
        self.since = {each: self.since.get(each, at) for each in possible}
        self.steps.append(TimelineStep(at, what, view.value, len(view.sure), len(possible)))

    def open_answers(self) -> list[OpenAnswer]:
        """Return the answers that may come and of which something is known, the oldest first."""
        known = known_answers(frozenset(self.since))
        return [each for each in self._explained_answers() if each.answer in known]

    def awaited(self) -> list[AwaitedFunction]:
        """Return the functions that open answers wait for, in the order in which to ask them.

        First comes the one that can bring about most of them by itself; of two alike, the one that
        is waited for longer. Answers of which nothing is known count if there are no others.
        """
        open_ = self.open_answers() or self._explained_answers()
        waiting: dict[str, list[OpenAnswer]] = {}
        for each in open_:  # the oldest first
            for name in frozenset[str]().union(*each.waits_for):
                waiting.setdefault(name, []).append(each)
        alone = {
            name: sum(frozenset({name}) in each.waits_for for each in several)
            for name, several in waiting.items()
        }
        positions = self._positions_in_time()
        ordered = sorted(
            waiting, key=lambda name: (-alone[name], positions.get(waiting[name][0].since, 0), name)
        )
        return [
            AwaitedFunction(name, position, alone[name], len(waiting[name]), waiting[name][0].since)
            for position, name in enumerate(ordered, 1)
        ]

    def _explained_answers(self) -> list[OpenAnswer]:
        """Return the answers that may come, with what they wait for, the oldest first."""
        explained = self.view.explain_possible()
        positions = self._positions_in_time()
        found = [
            OpenAnswer(answer, explained[answer].waits_for, since)
            for answer, since in self.since.items()
            if answer in explained and explained[answer].same_key is None
        ]
        return sorted(found, key=lambda each: (positions.get(each.since, 0), str(each.answer)))

    def _positions_in_time(self) -> dict[str, int]:
        return {step.at: position for position, step in enumerate(self.steps)}

    def to_svg(self) -> str:
        """Return a plot: the value as a band, and how many answers are sure and possible."""
        return _drawing(self.steps)


def known_answers(answers: frozenset[Answer]) -> frozenset[Answer]:
    """Return the answers of which something is known; a yes is, too."""
    return frozenset(each for each in answers if not each or any(label != ANY for label in each))


def _positions(steps: list[TimelineStep]) -> list[float]:
    """Return where steps stand between 0 and 1: by their times, if all of them have one."""
    numbers = [number_of(step.at) for step in steps]
    if steps[0].at == START and len(steps) > 1:
        numbers[0] = numbers[1]
    times = [each for each in numbers if each is not None]
    if len(times) < len(steps) or times != sorted(times):
        times = [float(at) for at in range(len(steps))]
    first, last = times[0], times[-1]
    return [(each - first) / (last - first) if last > first else 0.0 for each in times]


def _drawing(steps: list[TimelineStep]) -> str:
    most = max([1, *(step.sure for step in steps), *(step.possible for step in steps)])
    right, bottom = WIDTH - MARGIN, HEIGHT - MARGIN
    starts = [MARGIN + each * (right - MARGIN) for each in _positions(steps)] if steps else []
    ends = [*starts[1:], float(right)]
    parts = []
    for step, start, end in zip(steps, starts, ends, strict=True):
        color, word = VALUES[float(step.value)]
        words = f"{step.at}: {step.what}, {word}, {step.sure} sure, {step.possible} possible"
        title = element("title", escape_text(words))
        size = {"x": start, "y": bottom + 6, "width": max(1.0, end - start), "height": BAND}
        parts.append(element("rect", title, **size, fill=color))
    for at in range(most + 1) if most <= 10 else (0, most // 2, most):
        y = bottom - at / most * (bottom - MARGIN)
        parts.append(element("path", d=path((MARGIN, y), ("H", (right,))), stroke="#dddddd"))
        parts.append(element("text", str(at), x=MARGIN - 6, y=y + 4, text_anchor="end"))
    for name, color in LINES:
        heights = [bottom - getattr(step, name) / most * (bottom - MARGIN) for step in steps]
        moves: list[tuple[str, tuple[float, ...]]] = []
        for start, end, y in zip(starts, ends, heights, strict=True):
            moves += [("L", (start, y)), ("H", (end,))]
        line = path((starts[0], heights[0]), *moves[1:]) if steps else ""
        look = {"stroke_width": 2, "stroke_dasharray": None if name == "sure" else "5 3"}
        parts.append(element("path", d=line, fill="none", stroke=color, **look))
    for at, (name, color) in enumerate(LINES):
        position = {"x": MARGIN + 130 * at, "y": MARGIN - 20}
        parts.append(element("text", f"{name} answers", **position, fill=color))
    if steps:
        y = HEIGHT - 8
        parts.append(element("text", escape_text(steps[0].at), x=MARGIN, y=y))
        parts.append(element("text", escape_text(steps[-1].at), x=right, y=y, text_anchor="end"))
    font = {"font_family": "sans-serif", "font_size": 12}
    title = "The state of a view over time"
    return document(WIDTH, HEIGHT, *parts, title=title, **font, role="img")
