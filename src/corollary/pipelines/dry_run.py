"""Checks a project: all of it is loaded, lowered, and bound as one program.

Nothing is read but the columns of sources, nothing is kept, and Java is never started: the columns
of what is left to Spark stay unknown.
"""

from corollary.core.types import SYMBOL
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.pipelines.compile import CompiledProject, ProjectCompiler
from corollary.pipelines.graph import Project
from corollary.pipelines.lowering.lower import lower_project
from corollary.pipelines.sources import source_columns, source_program

_UNKNOWN = (QueryColumn("unknown", SYMBOL),)
"""Stands for the columns of what is left to Spark; nothing that is maintained reads them."""


def compile_dry(project: Project) -> CompiledProject:
    """Return a project as it would run.

    Raises:
        InputError: with all that is wrong with its datasets.
    """
    lowered = lower_project(project, source_columns)
    sources = source_program(lowered.sources.values(), project)
    return ProjectCompiler(lowered, sources, lambda *_: _UNKNOWN).compile()
