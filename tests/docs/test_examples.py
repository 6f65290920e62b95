"""Runs each example of README.md, docs/**/*.md and the skill, a document in a directory of its own.

| block       | what happens                                                                       |
|-------------|------------------------------------------------------------------------------------|
| `console`   | each `$ command` runs in the document's directory; what it prints must be what     |
|             | follows it, where `...` stands for anything, and it must exit with 0. A command    |
|             | that ends in a backslash goes on in the next line (a `> ` before that is dropped)  |
| `python`    | runs in one namespace per document; where it has `>>>`, its output is compared too |
| `dl`        | must pass `corollary check`                                                        |
| `SHOWN`     | the languages named there are only shown; any other is an error                    |

A comment right before a block, which the reader does not see, says what else to do with it:

| comment                       | meaning                                                          |
|-------------------------------|------------------------------------------------------------------|
| `<!-- file: network.dl -->`   | write the block to this file (any language); nothing is run      |
| `<!-- fragment -->`           | a `dl` block that is no program by itself: nothing is run        |
| `<!-- not run: REASON -->`    | something that a test cannot run, such as `git clone`            |
| `<!-- exit: 1 -->`            | the last command of a `console` block exits with this status     |
"""

import difflib
import doctest
import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from corollary.cli.main import group
from corollary.serve import client
from corollary.serve.server_file import SERVER_FILE
from support.command_line import COMMAND
from support.paths import REPOSITORY
from support.postgresql_server import Server

ON_SPARK = {"documents.md", "python.md", "spark.md", "streaming.md"}
"""Documents whose examples start a session in this process."""
README = REPOSITORY / "README.md"
SKILL = REPOSITORY / "skills" / "corollary" / "SKILL.md"
DOCUMENTS = [SKILL, *sorted((REPOSITORY / "docs").rglob("*.md"))]
ON_POSTGRESQL = {"connections.md"}
"""Documents whose examples have a database, to which the connection `shop` leads."""
LOCAL = [path for path in DOCUMENTS if path.name not in ON_SPARK | ON_POSTGRESQL]
REPLICATED = [path for path in DOCUMENTS if path.name in ON_POSTGRESQL]
SPARK = [path for path in DOCUMENTS if path.name in ON_SPARK]
SHOWN = {"csv", "diff", "ebnf", "json", "mermaid", "sql", "text", "toml", "yaml"}
DIRECTIVE = re.compile(r"<!-- (file|not run|exit): (.+) -->|<!-- (fragment) -->")
COMMAND_SECONDS = 600
DEFAULT_PORT = "8765"
NO_ERRORS = " 2>/dev/null"
QUOTED = re.compile(r"'[^']*'")
SIMPLE = re.compile(r"(?:echo ' *' \| )?corollary [\w ./:=,@%+\"'-]+")
"""A command that needs no shell, and no process of its own: quoted text is left out of it."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its first line, and the comments before it."""

    language: str
    text: str
    line: int
    directives: dict[str, str]


@dataclass(frozen=True)
class Command:
    """A command of a console block, and the output that the document promises."""

    text: str
    expected: str
    line: int


@dataclass(frozen=True)
class Document:
    """A document under test, the directory its examples run in, and what its code has named."""

    path: Path
    directory: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def fail(self, line: int, message: str) -> NoReturn:
        pytest.fail(f"{self.path.name}:{line}: {message}", pytrace=False)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory to be in, where `corollary` is the package under test."""
    programs, directory = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    directory.mkdir()
    for name, command in {
        "python": shlex.quote(sys.executable),
        "corollary": shlex.join(COMMAND),
    }.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    for name in [name for name in os.environ if name.startswith("COROLLARY_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # keeps both output streams in order
    monkeypatch.setenv("COROLLARY_SERVE_PORT", str(free_port()))
    monkeypatch.setenv("COROLLARY_SERVE_READERS", "0")
    monkeypatch.setattr(client, "PROBE_SECONDS", 60.0)  # the machine may be busy
    monkeypatch.chdir(directory)
    yield directory
    for left in directory.glob(f"*/{SERVER_FILE}"):  # a document has failed while a server ran
        os.kill(json.loads(left.read_text("utf-8"))["pid"], signal.SIGTERM)


def free_port() -> int:
    """Return a port that nobody listens on; documents call it 8765, the default."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.smoke
def test_readme(workplace: Path) -> None:
    run_document(Document(README, workplace))


@pytest.mark.parametrize("path", LOCAL, ids=name_of)
def test_examples(path: Path, workplace: Path) -> None:
    run_document(Document(path, workplace))


@pytest.mark.matrix(1, group="postgresql")
@pytest.mark.parametrize("path", REPLICATED, ids=name_of)
def test_examples_on_postgresql(
    path: Path, workplace: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.place(workplace).partition("?")[0]
    monkeypatch.setenv("COROLLARY_CONNECTION_SHOP", url)
    run_document(Document(path, workplace))


@pytest.mark.spark
@pytest.mark.matrix(3)
@pytest.mark.parametrize("path", SPARK, ids=name_of)
def test_examples_on_spark(path: Path, workplace: Path) -> None:
    run_document(Document(path, workplace))


def run_document(document: Document) -> None:
    for block in find_blocks(document):
        run_block(document, block)


def find_blocks(document: Document) -> Iterator[Block]:
    """Yields the fenced blocks of a document, wherever they are nested."""
    comments: list[str] = []
    for token in MarkdownIt("commonmark").parse(document.path.read_text(encoding="utf-8")):
        if token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            comments.append(token.content.strip())
            continue
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            language = (token.info.split() or [""])[0]
            yield Block(language, token.content, line, read_directives(document, line, comments))
        elif any(DIRECTIVE.fullmatch(comment) for comment in comments):
            document.fail(line, f"no block follows {comments}")
        comments = []


def read_directives(document: Document, line: int, comments: list[str]) -> dict[str, str]:
    directives = {}
    for comment in comments:
        found = DIRECTIVE.fullmatch(comment)
        if found is None:
            document.fail(line, f"unknown comment before a block: {comment}")
        directives[found[1] or found[3]] = found[2] or ""
    return directives


def run_block(document: Document, block: Block) -> None:
    match block.language, block.directives:
        case _, {"file": name}:
            target = document.directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        case _, {"not run": _}:
            pass
        case "dl", {"fragment": _}:
            pass
        case "console", _:
            run_console(document, block)
        case "python", _ if ">>>" in block.text:
            run_session(document, block)
        case "python", _:
            # The empty lines make a traceback point into the document.
            code = compile("\n" * block.line + block.text, document.path, "exec")
            exec(code, document.namespace)
        case "dl", _:
            check_program(document, block)
        case language, _ if language in SHOWN:
            pass
        case language, _:
            document.fail(block.line, f"a block in the language `{language}` is not understood")


def run_console(document: Document, block: Block) -> None:
    if not block.text.startswith("$ "):
        document.fail(block.line, "a console block begins with `$ command`")
    commands = list(find_commands(block))
    port = os.environ["COROLLARY_SERVE_PORT"]
    for command in commands:
        status, output = run_command(document, command.text.replace(DEFAULT_PORT, port))
        output = output.replace(port, DEFAULT_PORT) if DEFAULT_PORT in block.text else output
        if not is_same(command.expected, output):
            document.fail(command.line, f"`{command.text}` printed\n{compare(command, output)}")
        promised = int(block.directives.get("exit", 0)) if command is commands[-1] else 0
        if status != promised:
            document.fail(command.line, f"`{command.text}` exits with {status}, not {promised}")


def find_commands(block: Block) -> Iterator[Command]:
    """Yields the commands of a console block, each with the output below it."""
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        line = block.line + 1 + at
        text = lines[at].removeprefix("$ ")
        at += 1
        while text.endswith("\\") and at < len(lines):
            text = f"{text[:-1]}{lines[at].removeprefix('> ').lstrip()}"
            at += 1
        output = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        yield Command(text, "\n".join(lines[output:at]), line)


def run_command(document: Document, command: str) -> tuple[int, str]:
    """Run a command, in this process if it can be; return its status and what it prints."""
    simple = command.removesuffix(NO_ERRORS)
    if SIMPLE.fullmatch(QUOTED.sub("' '", simple)):
        words, stdin = shlex.split(simple), None
        if words[0] == "echo":
            stdin, words = f"{words[1]}\n", words[3:]
        result = CliRunner().invoke(group, words[1:], input=stdin, prog_name="corollary")
        if result.exception is None or isinstance(result.exception, SystemExit):
            if simple != command or not result.stderr:
                return result.exit_code, result.stdout
            return result.exit_code, result.output if result.stdout else result.stderr
        raise result.exception
    finished = subprocess.run(
        ["bash", "-c", command],
        cwd=document.directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return finished.returncode, finished.stdout


def is_same(expected: str, actual: str) -> bool:
    """Compares exactly, but for blanks at the end of a line; `...` matches anything."""
    flags = doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE
    return doctest.OutputChecker().check_output(tidy(expected), tidy(actual), flags)


def tidy(output: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in output.rstrip().splitlines())


def compare(command: Command, output: str) -> str:
    lines = tidy(command.expected).splitlines(), tidy(output).splitlines()
    return "\n".join(difflib.unified_diff(*lines, "document", "actual", lineterm=""))


def run_session(document: Document, block: Block) -> None:
    """Runs a block of `>>>` examples as doctest does."""
    session = doctest.DocTestParser().get_doctest(
        block.text, document.namespace, document.path.name, str(document.path), block.line
    )
    report = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(session, out=report.write, clear_globs=False)
    document.namespace.update(session.globs)
    if runner.failures:
        document.fail(block.line, report.getvalue())


def check_program(document: Document, block: Block) -> None:
    program = document.directory / f"line_{block.line}.dl"
    program.write_text(block.text, encoding="utf-8")
    status, output = run_command(document, f"corollary check {program.name}")
    program.unlink()
    if status != 0:
        document.fail(block.line, f"this program does not pass `corollary check`\n{output}")


GOOD = """\
<!-- file: data/names.csv -->
```csv
ann
bob
```

1. In a list, with a long command:

   ```console
   $ cat \\
   >     data/names.csv
   ann
   bob
   $ python -c 'import os; print(os.getcwd()); print("done")'
   /...
   done
   ```

<!-- exit: 3 -->
```console
$ true
$ echo stopped; exit 3
stopped
```

```python
from pathlib import Path
names = Path("data/names.csv").read_text().split()
```

```python
>>> names
['ann', 'bob']
>>> first = names[0]
```

```python
assert first == "ann"
```

<!-- an ordinary comment -->

Text.

<!-- not run: needs a network -->
```console
$ git clone corollary
```

<!-- fragment -->
```dl
link(x, y) :- ...
```
"""

BAD = {
    "other output": ("```console\n$ echo a\nb\n```", r":2: `echo a` printed\n(.|\n)*-b\n\+a"),
    "missing output": ("```console\n$ echo a\n```", r":2: `echo a` printed"),
    "other status": ("```console\n$ false\n```", r":2: `false` exits with 1, not 0"),
    "no status": ("<!-- exit: 1 -->\n```console\n$ true\n```", r"`true` exits with 0, not 1"),
    "no command": ("```console\na\n```", r":1: a console block begins with"),
    "other value": ("```python\n>>> 1 + 1\n3\n```", r"Expected:\n    3\nGot:\n    2"),
    "unknown language": ("```sh\nrm x\n```", r":1: a block in the language `sh`"),
    "no language": ("```\nx\n```", r":1: a block in the language ``"),
    "unknown comment": ("<!-- fil: x -->\n```dl\n```", r":2: unknown comment before a block"),
    "lost comment": ("<!-- file: x -->\n\nText.\n", r":3: no block follows"),
}


def test_runner_follows_the_conventions(workplace: Path) -> None:
    path = workplace.parent / "good.md"
    path.write_text(GOOD, encoding="utf-8")
    run_document(Document(path, workplace))


@pytest.mark.parametrize("name", BAD)
def test_runner_notices(name: str, workplace: Path) -> None:
    text, message = BAD[name]
    path = workplace.parent / "bad.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match=message):
        run_document(Document(path, workplace))
