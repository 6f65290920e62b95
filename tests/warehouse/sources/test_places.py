"""Where sources may be: files, folders, patterns; what is out of reach, and what is refused."""

import gzip
import os
from functools import partial
from pathlib import Path

import pytest

from corollary.core.arrow import from_python, to_python
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse.files import input_files
from corollary.warehouse.sources.source import Source, TableRows
from corollary.warehouse.sources.source_factory import SourceFactory
from support.source_model import SPAN, P, Run, a_source, csv, objects, parquet, refused


def test_folders_and_patterns(tmp_path: Path) -> None:
    for name in ("1.tsv", "_2.tsv", ".3.tsv", "d/4.tsv", "d/e/5.tsv", "d/6.txt", "_t/7.tsv"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(f"{Path(name).stem[-1]}\t\n")
    for name, expected in {
        "in": "1456",
        "in/*": "1",
        "in/*/*.tsv": "4",
        "in/**/*.tsv": "145",
        "in/**/**/*.tsv": "145",
        "in/**": "1456",
        "in/[0-9].tsv": "1",
        "in/_*": "2",
        "in/_*/*": "7",
        "in/?/[!5]*.*": "46",
        str(tmp_path / "in" / "*.tsv"): "1",
    }.items():
        Run(a_source(tmp_path, name)).step((int(each), "") for each in expected)
    (tmp_path / "in" / "[x].tsv").write_text("8\t\n")
    Run(a_source(tmp_path, "in/[x].tsv")).step([(8, "")])


def test_a_mixed_folder(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(csv([(1, "a")]))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(objects([(2, "b")])))
    (tmp_path / "c.parquet").write_bytes(parquet([(3, "c")]))
    Run(a_source(tmp_path, ".")).step([(1, "a"), (2, "b"), (3, "c")])


def test_a_place_without_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (warning,) = Run(a_source(tmp_path, "empty")).step([]).warnings
    assert (warning.code, warning.severity) == ("C0958", "warning")
    assert Run(a_source(tmp_path, "empty/*.tsv")).step([]).warnings
    for name in ("missing.tsv", "missing/*.tsv", "missing/"):
        source = a_source(tmp_path, name)
        for action in (Run(source).step, partial(source.is_unchanged, None)):
            (found,) = refused(action, "C0804")
            assert found.message.endswith("cannot be read: No such file or directory")
            assert name.strip("/") in found.message
            assert found.span is SPAN


def test_what_is_out_of_reach(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (tmp_path / "secret.tsv").write_text("1\ta\n")
    outside = ("../secret.tsv", str(tmp_path / "secret.tsv"), "../*.tsv", "..", "*/../../*.tsv")
    for name in (*outside, "http://a/b", "/dev/zero"):
        refused(partial(a_source, root, name), "C0805")
    refused(partial(a_source(root, "*/../*.tsv").is_unchanged, None), "C0805")
    (root / "d" / "link.tsv").symlink_to(tmp_path / "secret.tsv")
    refused(partial(a_source(root, "d").is_unchanged, None), "C0805")
    (root / "d" / "link.tsv").unlink()
    os.mkfifo(root / "d" / "pipe.tsv")
    refused(partial(a_source(root, "d").is_unchanged, None), "C0805")
    refused(lambda: a_source(root, "d/pipe.tsv"), "C0805")
    (root / "d" / "pipe.tsv").unlink()
    (root / "d" / "ring").symlink_to(root / "d")
    refused(partial(a_source(root, "d").is_unchanged, None), "C0805")
    refused(partial(a_source(root, "d/*/*.tsv").is_unchanged, None), "C0805")
    (root / "d" / "ring").unlink()
    (root / "real.tsv").write_text("1\ta\n")
    (root / "d" / "link.tsv").symlink_to(root / "real.tsv")
    Run(a_source(root, "d")).step([(1, "a")])


def test_a_link_that_is_turned(tmp_path: Path) -> None:
    (tmp_path / "1.tsv").write_text("1\ta\n")
    (tmp_path / "2.tsv").write_text("2\ta\n")
    link = tmp_path / "p.facts"
    link.symlink_to("1.tsv")
    run = Run(a_source(tmp_path))
    run.step([(1, "a")])
    link.unlink()
    link.symlink_to("2.tsv")
    assert not run.source.is_unchanged(run.position)
    run.step([(2, "a")])


def test_standard_input_is_no_source(tmp_path: Path) -> None:
    (found,) = refused(lambda: a_source(tmp_path, IO="stdin"), "C0956")
    assert found.note


def test_the_sources_of_a_program(tmp_path: Path) -> None:
    def sources(text: str) -> list[Source]:
        program = parse(SourceFile("p.dl", ".decl p(x: number, y: symbol) key(x)\n" + text))
        return SourceFactory(tmp_path).sources(program, {"p": P})

    (tmp_path / "a.tsv").write_text("1\ta\n")
    (tmp_path / "b.tsv").write_text("2\ta\n2\tb\n")
    one, other, output = '.input p(filename="a.tsv")', '.input p(filename="b.tsv")', ".output p\n"
    first, second = sources(f"{one}\n{one}\n{other}\n{output}")
    assert (first.name, second.name) == ("p < a.tsv", "p < b.tsv")
    assert first.relation is P
    assert to_python(first.change_since(None, TableRows(from_python([], P))).added) == [(1, "a")]
    refused(partial(second.change_since, None, TableRows(from_python([], P))), "C0954")
    (found,) = refused(lambda: sources(one + "\n" + one.replace(")", ', delimiter=",")')), "C0956")
    assert found.message == "`p` reads `a.tsv` in two ways."


def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "EXPANDED_ALLOWED_BYTES", 10_000)
    (tmp_path / "p.tsv.gz").write_bytes(gzip.compress(bytes(10_000_000)))
    (found,) = refused(Run(a_source(tmp_path, "p.tsv.gz")).step, "C0804")
    assert "expands to more than 200 times its size" in found.message
    (tmp_path / "p.tsv.gz").write_bytes(gzip.compress(csv([(1, "a")]))[:-3])
    refused(Run(a_source(tmp_path, "p.tsv.gz")).step, "C0804")
    monkeypatch.setattr("corollary.warehouse.sources.parquet_file.EXPANDED_ALLOWED_BYTES", 10_000)
    (tmp_path / "p.parquet").write_bytes(parquet([(1, "a")] * 100_000))
    (found,) = refused(Run(a_source(tmp_path, "p.parquet")).step, "C0804")
    assert "expands to more than 200 times its size" in found.message
