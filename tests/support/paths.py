"""Where things are: the tests, their cases, and the repository around them."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
CASES = TESTS / "cases"
REPOSITORY = TESTS.parent
