"""A plugin of pytest, which finds it by its entry point: cases are items of pytest.

Every session of pytest imports this module, so that it imports the rest when there are cases.
"""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corollary.testing import CASE_SUFFIXES

if TYPE_CHECKING:
    from corollary.testing.cases import Case


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "CaseFile | None":
    """Collect the files of cases."""
    if not file_path.name.endswith(CASE_SUFFIXES):
        return None
    found: CaseFile = CaseFile.from_parent(parent, path=file_path)
    return found


class CaseFile(pytest.File):
    """A file of cases."""

    def collect(self) -> "Iterator[CaseItem]":
        """Yield the cases."""
        from corollary.errors import InputError
        from corollary.testing.case_files import read_cases

        try:
            cases = read_cases(self.path)
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            yield CaseItem.from_parent(self, name=case.name, case=case)


class FailedCaseError(Exception):
    """A case has failed; its text says how."""


class CaseItem(pytest.Item):
    """A case."""

    def __init__(self, *, case: "Case", **options: Any) -> None:
        super().__init__(**options)
        self._case = case

    def runtest(self) -> None:
        """Run the case."""
        from corollary.testing.run_case import run_case

        outcome = run_case(self._case)
        if not outcome.is_passed:
            raise FailedCaseError("\n".join(outcome.lines()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what does not hold, without a traceback."""
        if isinstance(excinfo.value, FailedCaseError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[PathLike[str], int, str]:
        """Return where the case is."""
        return self.path, self._case.span.line - 1, self.name
