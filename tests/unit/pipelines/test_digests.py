"""Digests of queries with functions in Python: equal in every process, as long as these are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corollary.pipelines.digests import digest_of
from corollary.pipelines.project import load_project

SPEC = "name: d\nstorage: storage\nlibraries:\n  - glob:\n      include: code/**\n"
HEAD = """\
import re
from enum import Enum
from functools import partial, wraps
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.active()
"""
TEXT = '''
WORDS = {"one", "two", "three", "four"}
FACTOR = 1
PATTERN = re.compile("a+")


class Kind(Enum):
    GOOD = 1


class Counter:
    step = 1

    def __init__(self):
        self.count = 0

    def add(self, number):
        self.count += number + self.step
        return self.count


def helper(text):
    return deeper(text) if text in {"five", "six", "seven"} else text * 2


def deeper(text):
    return text[::-1]


def recursive(text, depth=3):
    return recursive(text[1:], depth - 1) if text and depth else text


def make(suffix):
    counter = Counter()

    def label(text, *, ending="!"):
        """Return a label."""
        found = [each for each in text if each in WORDS]
        kind = Kind.GOOD if PATTERN.match(text) else None
        return f"{helper(text)}{found}{kind}{recursive(text)}{suffix}{ending}{counter.add(FACTOR)}"

    return label


@dp.materialized_view
def labels():
    label = F.udf(make("s"), "string")
    return spark.read.table("names").select(label("name"))
'''
NAMES = """
@dp.materialized_view
def names():
    return spark.createDataFrame([("ann",)], "name STRING")
"""
PRINT = """
import sys
from pathlib import Path
for each in sys.argv[2:]:
    __import__(each)
from corollary.pipelines.digests import digest_of
from corollary.pipelines.project import load_project
project = load_project(Path(sys.argv[1]))
print(*(digest_of(each.query) for each in project.flows))
"""


def write(folder: Path, text: str) -> Path:
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "all.py").write_text(HEAD + text + NAMES)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(SPEC)
    return spec


def digest(folder: Path, text: str = TEXT) -> str:
    """Return the digest of the first dataset of a project with this text."""
    return digest_of(load_project(write(folder, text)).flows[0].query)


OTHERS = {
    "code": ('f"{helper', 'f"<{helper'),
    "constant": ("text * 2", "text * 3"),
    "type of a constant": ("FACTOR = 1", "FACTOR = True"),
    "constant of a set": ('"seven"}', '"eight"}'),
    "default": ("depth=3", "depth=2"),
    "default by keyword": ('ending="!"', 'ending="?"'),
    "closed over": ('make("s")', 'make("t")'),
    "global": ("FACTOR = 1", "FACTOR = 2"),
    "global set": ('"four"}', '"five"}'),
    "global pattern": ('compile("a+")', 'compile("a*")'),
    "flags of a pattern": ('compile("a+")', 'compile("a+", re.I)'),
    "member": ("GOOD = 1", "GOOD = 2"),
    "helper of a helper": ("[::-1]", "[::-2]"),
    "itself": ("recursive(text[1:]", "recursive(text[2:]"),
    "attribute of a class": ("step = 1", "step = 2"),
    "attribute of an object": ("self.count = 0", "self.count = 5"),
    "method": ("number + self", "number - self"),
    "returned type": ('"string")', '"string").asNondeterministic()'),
}
SAME = {
    "other lines": ("WORDS =", "\n\n# Words.\nWORDS ="),
    "order of a set": ('"one", "two", "three", "four"', '"four", "three", "two", "one"'),
    "another global": ("FACTOR = 1", "FACTOR = 1\nOTHER = 2"),
    "an equal value": ("FACTOR = 1", "FACTOR = 3 - 2"),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_another_function_has_another_digest(tmp_path: Path, change: tuple[str, str]) -> None:
    assert change[0] in TEXT
    assert digest(tmp_path) != digest(tmp_path, TEXT.replace(*change))


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_the_same_function_has_the_same_digest(tmp_path: Path, change: tuple[str, str]) -> None:
    assert change[0] in TEXT
    assert digest(tmp_path) == digest(tmp_path, TEXT.replace(*change))


def test_a_text_counts_whatever_bytecode_python_would_take_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    first = digest(tmp_path)
    assert first != digest(tmp_path, TEXT.replace("FACTOR = 1", "FACTOR = 2"))  # as long, at once
    assert first == digest(tmp_path)
    assert not (tmp_path / "code" / "__pycache__").exists()


@pytest.mark.parametrize(
    ("expression", "other"),
    [
        ('F.transform(F.split("name", ""), lambda x: F.upper(x))', "F.lower(x)"),
        ("F.rand()", "F.randn()"),
        ('F.udf(lambda x: sorted({"a", "b"}), "string")("name")', 'F.udf(max, "string")("name")'),
    ],
)
def test_what_is_numbered_on_and_drawn_by_lot(tmp_path: Path, expression: str, other: str) -> None:
    text = TEXT.replace('label("name")', expression)
    first = digest(tmp_path, text)
    before = "\nF.transform('x', lambda x: x)\nother = spark.range(3)\n"
    assert first == digest(tmp_path, text) == digest(tmp_path, before + text)
    other = expression.replace("F.upper(x)", other) if "upper" in expression else other
    assert first != digest(tmp_path, TEXT.replace('label("name")', other))


def test_a_module_of_the_user_counts_by_what_is_read_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = TEXT.replace("WORDS = {", "import digests_of_user as own\nWORDS = {").replace(
        "text[::-1]", "own.clean(text)"
    )
    module = tmp_path / "digests_of_user.py"

    def found(code: str) -> str:
        sys.modules.pop(module.stem, None)
        module.write_text(code)
        return digest(tmp_path, text)

    first = found("import json\nSIZE = 1\ndef clean(text): return json.dumps(text)[SIZE]\n")
    assert first == found(
        "import json\nOTHER = 7\nSIZE = 1\ndef clean(text): return json.dumps(text)[SIZE]\n"
    )
    assert first != found(
        "import json\nSIZE = 23\ndef clean(text): return json.dumps(text)[SIZE]\n"
    )
    assert first != found("import json\nSIZE = 1\ndef clean(text): return json.loads(text)[SIZE]\n")
    sys.modules.pop(module.stem)


@pytest.mark.slow
def test_the_digest_is_the_same_in_every_process(tmp_path: Path) -> None:
    spec = write(tmp_path, TEXT)

    def printed(seed: str, *modules: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PRINT, str(spec), *modules]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert printed("1") == printed("2", "re", "xml.dom.minidom", "concurrent.futures.thread")
