"""A question to a program whose facts are read for it, without a database."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from corollary.console import Console, Phase, SilentConsole
from corollary.core.engine import Limits
from corollary.core.program import Program
from corollary.database.counters import ProgressRecorder
from corollary.database.engines import SparkFrames
from corollary.database.intake.evaluate_once import FileLocations, fill_engine
from corollary.database.program.goals import given_rows
from corollary.database.program.loaded_program import load_program
from corollary.database.program.question_bounds import bounded_question
from corollary.database.sql.answer import SqlAnswer
from corollary.database.sql.questions import (
    answer_shape,
    finish_answer,
    hidden_name,
    read_question,
)
from corollary.database.sql.session import answer_text, refuse_statements
from corollary.errors import InputError
from corollary.frontends.sql.catalog import visible_catalog
from corollary.frontends.sql.statements.questions import StatementPlace, compile_question
from corollary.maintain.goal_evaluation import solve


def ask_once(
    program: Program,
    text: str,
    parameters: Mapping[str, Any],
    places: FileLocations,
    *,
    limits: Limits | None = None,
    console: Console | None = None,
    today: date | None = None,
) -> SqlAnswer:
    """Return the answer to a question.

    Raises:
        InputError: the program, its facts or the question are not acceptable.
    """
    console = console or SilentConsole()

    def ask(tree: Any, place: StatementPlace, at: object) -> SqlAnswer:
        if at is not None:
            raise InputError.of(
                "C1376", "A program has no history.", None, "ask a warehouse, or leave out `AS OF`"
            )
        loaded = load_program(program)
        question = compile_question(
            tree, place, visible_catalog(loaded.program), hidden_name(loaded)
        )
        goal = read_question(loaded, question)
        needed = replace(loaded, normal=goal.program)
        engine = fill_engine(needed, places, console, today=today)
        answers = goal.answers
        console.enter(Phase.EVALUATE)
        with given_rows(engine, goal, answers):
            plan = solve(goal.program, goal.literal, engine.statistics())
            engine.run(plan, ProgressRecorder(console), limits or Limits())
            table = engine.read(answers.name)
        console.enter(Phase.OTHER)
        shape = answer_shape(answers.types, question)
        rows = finish_answer(table, question, has_counts=question.is_bag)
        return SqlAnswer(shape, rows, SparkFrames(), question.is_ordered)

    with bounded_question(limits):
        return answer_text(text, parameters, None, ask, refuse_statements)
