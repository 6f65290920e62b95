"""What has to hold of advice for any program: the obligations of the fuzz.

| obligation | how it is judged |
|---|---|
| answers stay | both programs under the engines' oracle, on data that keeps the dependencies |
| the criterion holds | every degree at most the effective arity |
| never slower | every exponent after at most before; less where something is advised |
| not better than possible | against every set partition, where bodies are small |
| the text does not matter | literals in another order, variables of other names |
| idempotent | advice on the reformed program is to do nothing |
"""

from __future__ import annotations

import random
from collections import Counter

from corollary.advisor.advice import Advice
from corollary.advisor.model.scheme import Options
from oracles import advice as advice_oracle
from oracles import evaluation
from support.cases.advisor import advice_for, changed_program, degrees
from support.generators.advisor_programs import Program

WAYS = (
    Options(),
    Options(selection="minimal", partial_clusters=True),
    Options(opaque="absorb", partial_clusters=True),
    Options(scope="used", self_materialisation="forbid", merges_disjuncts=False),
)
SMALL = 5
"""Bodies of so many literals are searched exhaustively."""


def judge(program: Program, seed: int, counts: Counter[str] | None = None) -> None:
    """Judge the advice for a program under all options."""
    counts = Counter() if counts is None else counts
    text = program.text()
    answers = evaluation.evaluate(text, program.facts)["q"]
    for options in WAYS:
        advice = advice_for(text, ["q"], options)
        about = f"{options}\n{text}"
        counts["applicable" if advice.is_applicable else "not applicable"] += 1
        _judge_exponents(advice, about)
        _judge_answers(advice, text, program, answers, about)
        again = advice_for(program.text(random.Random(seed)), ["q"], options)
        assert _figures(again) == _figures(advice), f"depends on the text\n{about}"
        if options == Options():
            _judge_possible(advice, program, about, counts)


def _judge_exponents(advice: Advice, about: str) -> None:
    assert all(each <= advice.arity.value for each in degrees(advice)), f"criterion\n{about}"
    for each in advice.predicates.values():
        before, after = each.before.left_deep, each.after.left_deep
        assert after < before if each.is_applicable else after == before, f"slower\n{about}"
        assert each.before.bushy <= before <= each.before.pipelined, f"plans\n{about}"


def _judge_answers(
    advice: Advice, text: str, program: Program, answers: set[object], about: str
) -> None:
    changed = changed_program(text, advice)
    found = evaluation.evaluate(changed, program.facts)["q"]
    assert found == answers, f"answers differ\n{about}\n{changed}"
    if advice.is_applicable:
        for again in (changed, _all_stored(changed)):
            repeated = advice_for(again, ["q"], advice.options)
            assert not repeated.queries["q"].is_applicable, f"not idempotent\n{about}\n{changed}"


def _all_stored(text: str) -> str:
    lines = (
        line.replace(" virtual inline", " stored") if line.startswith(".decl mv_") else line
        for line in text.splitlines()
    )
    return "\n".join(lines)


def _judge_possible(advice: Advice, program: Program, about: str, counts: Counter[str]) -> None:
    clauses = [rule.as_clause() for rule in program.rules]
    found = advice.queries["q"]
    if "d" in program.derived or any(len(each["literals"]) > SMALL for each in clauses):
        return
    counts["searched exhaustively"] += 1
    before = max(advice_oracle.clause_cost(each, program.fds) for each in clauses)
    assert found.before.left_deep == before, f"before: {before}\n{about}"
    limit = advice.arity.value
    least = max(advice_oracle.exhaustive(each, program.fds, limit) for each in clauses)
    assert found.after.left_deep >= least, f"better than possible: {least}\n{about}"
    counts["as good as possible"] += found.after.left_deep == least


def _figures(advice: Advice) -> tuple[object, ...]:
    exponents = sorted(
        (name, each.before.left_deep, each.after.left_deep, each.is_applicable)
        for name, each in advice.predicates.items()
    )
    return exponents, degrees(advice), advice.arity.value
