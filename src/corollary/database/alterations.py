"""Other columns, or another name, of a base relation: the program after it, and its tuples.

The relation becomes another one, as one whose types change does (`program/transitions.py`). What it
held, converted, is OLD of the new one: that is no event, sets off nothing, and views are maintained
by the difference of their rules.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from corollary.analysis.bags import ROWS_SUFFIX
from corollary.core.engine import LocalTable
from corollary.core.program import Program, Relation
from corollary.core.states import State
from corollary.database.program.column_mapping import Alteration, ColumnMapping, map_columns
from corollary.database.program.loaded_program import LoadedProgram, load_program
from corollary.database.program.names import readable_relation
from corollary.database.program.parts import TEXT_PART
from corollary.database.program.program_edits import load_next_program
from corollary.database.program_change import Conversion
from corollary.database.state import DatabaseState
from corollary.database.writing.operations import Operation, with_written_parts
from corollary.errors import InputError
from corollary.warehouse.copies import count_copies, distinct
from corollary.warehouse.sources.quarantine import QUARANTINE

Alter = Callable[[LoadedProgram], tuple[Program, Alteration | None]]
"""Returns the program that follows another, and how tuples are converted; None if none are."""


def altered_program(state: DatabaseState, alter: Alter) -> tuple[LoadedProgram, Conversion]:
    """Return the program after an alteration of the one in force, with converted tuples.

    Raises:
        InputError: the program or the tuples do not fit.
    """
    before, held = state.loaded.normal, state.held_parts()
    program, asked = alter(state.loaded)
    if asked is None:
        return load_next_program(program, before, held=held), Conversion()
    counts = before.bags.get(asked.relation)
    names = {asked.relation} if counts is None else {asked.relation, counts}
    after, is_bag = declared_relation(program, asked.new_name or asked.relation)
    how = map_columns(before.relations[asked.relation], after, asked)
    free = {name: parts for name, parts in held.items() if name not in names}
    if how.is_same and not asked.new_name and is_bag is (counts is not None):
        return load_next_program(program, before, held=free), Conversion()
    parts = {at for name in names for at in before.parts.get(name, {}).values()}
    loaded = load_next_program(program, before, held=free, replaced=names | parts)
    tuples = tuple(_converted(state, how, loaded))
    return with_written_parts(loaded, tuples), Conversion(frozenset(names | parts), tuples)


def dropped_program(
    state: DatabaseState, program: Program, drops: Collection[str]
) -> tuple[LoadedProgram, Conversion]:
    """Return a program that drops relations of the one in force, whatever tuples they have.

    One of the same name that it declares is another relation, without tuples.

    Args:
        state: of the database.
        program: the program after the edits.
        drops: the relations, in small letters.

    Raises:
        InputError: the program is wrong, or would lose other tuples.
    """
    before = state.loaded.normal
    names = {name for name in before.relations if name.lower() in drops}
    sizes = {name: size for name in names if (size := row_count(state, name))}
    names |= {before.bags[name] for name in names & before.bags.keys()}
    held = {name: parts for name, parts in state.held_parts().items() if name not in names}
    declared = {each.name for each in program.declarations}
    again = {
        name for name in names if name in declared or name.removesuffix(ROWS_SUFFIX) in declared
    }
    again |= {at for name in again for at in before.parts.get(name, {}).values()}
    loaded = load_next_program(program, before, held=held, replaced=again)
    return loaded, Conversion(frozenset(again), dropped=sizes)


def row_count(state: DatabaseState, name: str) -> int:
    """Return how many tuples a relation has, with their copies."""
    counts = state.loaded.normal.bags.get(name)
    return state.engine.size(name) if counts is None else count_copies(state.engine.handle(counts))


def alterable_relation(loaded: LoadedProgram, name: str) -> Relation:
    """Return a base relation whose columns may change.

    Raises:
        InputError: `C0963`, it is not one.
    """
    relation = readable_relation(loaded.normal, name)
    if name == QUARANTINE.name:
        text, cure = f"The columns of `{name}` are fixed.", "copy it into a relation of your own"
    elif loaded.normal.relations[loaded.normal.bags.get(name, name)].is_derived:
        text = f"`{name}` has rules, which determine its columns."
        cure = "change its declaration and rules in the program, and give it with --program"
    elif name in loaded.normal.bags.values():
        text = f"`{name}` has the counts of a bag, and its columns."
        cure = "alter the bag itself"
    else:
        return relation
    raise InputError.of("C0963", text, None, cure)


def declared_relation(program: Program, name: str) -> tuple[Relation, bool]:
    """Return the relation that a declaration of a program makes, and whether it has copies."""
    declarations = tuple(each for each in program.declarations if each.name == name)
    if not declarations:
        raise InputError.of(
            "C0913",
            f"The new program does not declare `{name}`, which the database holds.",
            None,
            "keep its `.decl`; delete its tuples if it is not needed",
        )
    alone = load_program(Program(types=program.types, declarations=declarations))
    return alone.normal.relations[name], name in alone.normal.bags


def base_tuples(state: DatabaseState) -> Iterator[Operation]:
    """Yield the tuples of all parts but the program text; of a bag, the relation of its counts."""
    normal = state.loaded.normal
    for name in written_relations(state):
        if name in normal.bags:  # its counts are written, too
            continue
        base = normal.bases.get(name, name)
        for part, at in normal.parts.get(base, {}).items():
            if part != TEXT_PART:
                yield Operation(State.ADDED, name, state.engine.read(at), part)


def written_relations(state: DatabaseState) -> Iterator[str]:
    """Yield the relations that have tuples of other parts than the program text."""
    for name, parts in state.held_parts().items():
        if set(parts) - {TEXT_PART}:
            yield name


def _converted(
    state: DatabaseState, how: ColumnMapping, after: LoadedProgram
) -> Iterator[Operation]:
    """Yield the tuples of the new relation, part by part; those of the text are its facts."""
    counts = state.loaded.normal.bags.get(how.before.name)
    now = after.normal.bags.get(how.after.name)
    for given in base_tuples(state):
        if given.relation not in (how.before.name, counts):
            continue
        rows = given.rows
        if counts is None:
            yield replace(given, relation=how.after.name, rows=how.convert(rows))
            continue
        made = how.convert(rows.select(range(how.before.arity)), has_copies=True)
        if now is not None:  # names of columns end before a `#`
            rows = made.append_column(max(made.column_names, key=len) + "#", rows.columns[-1])
            yield replace(given, relation=now, rows=rows)
            continue
        if (once := distinct(made)).num_rows < count_copies(LocalTable(rows)):
            raise InputError.of(
                "C0967",
                f"`{how.after.name}` has equal rows, and would have each once.",
                None,
                "delete them, and insert each once, first",
            )
        yield replace(given, relation=how.after.name, rows=once)
    for name in (how.after.name, now):
        if name is not None and (facts := after.normal.facts.get(name)):
            yield Operation(State.ADDED, name, list(facts), TEXT_PART)
