"""Finds the files that have cases, and reads them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from corollary.errors import Diagnostic, InputError
from corollary.testing import CASE_SUFFIXES
from corollary.testing.cases import Case

NAMED_SUFFIXES = (*CASE_SUFFIXES, ".yaml", ".yml")
"""What the names of files end with that are named, such as those of dbt."""
PROGRAM_EXTENSIONS = (".dl", ".sql")


def find_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files of cases: those that are named, and all in directories, but hidden ones.

    Raises:
        InputError: `C1804`, there is none, or one is no file of cases.
    """
    found: dict[Path, None] = {}
    for path in list(paths) or [Path()]:
        if path.is_dir():
            for each in sorted(path.rglob("*")):
                is_hidden = any(part.startswith(".") for part in each.relative_to(path).parts)
                if each.name.endswith(CASE_SUFFIXES) and each.is_file() and not is_hidden:
                    found[each] = None
        elif not path.name.endswith(NAMED_SUFFIXES):
            text = f"`{path}` is no file of cases."
            raise InputError.of("C1804", text, None, f"it ends with {', '.join(NAMED_SUFFIXES)}")
        else:
            found[path] = None
    if not found:
        note = f"write one whose name ends with {', '.join(CASE_SUFFIXES)}, or name it"
        raise InputError.of("C1804", "There are no files of cases.", None, note)
    return list(found)


def read_files(paths: Iterable[Path], programs: Sequence[Path]) -> list[Case]:
    """Return the cases of some files; programs are those of cases that name none.

    Raises:
        InputError: with the findings of all files, and of their programs.
    """
    found: list[Case] = []
    findings: dict[Diagnostic, None] = {}
    for path in paths:
        try:
            found += read_cases(path, programs)
        except InputError as error:
            findings |= dict.fromkeys(error.diagnostics)
    if findings:
        raise InputError(findings)
    return found


def read_cases(path: Path, programs: Sequence[Path] = ()) -> list[Case]:
    """Return the cases of a file.

    Args:
        path: the file.
        programs: of cases that name none.

    Raises:
        InputError: with all findings, also those of programs.
    """
    if path.suffix in PROGRAM_EXTENSIONS:
        from corollary.testing.text_cases import read_texts as read
    else:
        from corollary.testing.cases import read_yaml as read
    cases = read(path, programs or _programs_beside(path))
    for each in cases:
        if not each.files.paths:
            stem = _stem(path)
            text = f"The case `{each.name}` has no program."
            note = f"name it by `program:` or `--program`, or call it `{stem}.dl`"
            raise InputError.of("C1803", text, each.span, note)
        _ = each.files.normal  # what is wrong with a program is said once, and not of each case
    return cases


def _stem(path: Path) -> str:
    return path.stem.removesuffix(".test")


def _programs_beside(path: Path) -> list[Path]:
    """Return the programs that have the name of a file of cases."""
    beside = (path.with_name(_stem(path) + each) for each in PROGRAM_EXTENSIONS)
    return [each for each in beside if each.is_file()]
