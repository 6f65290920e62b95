"""Positions in the user's text: files and spans."""

from dataclasses import replace

from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One text of the user, with its name in messages.

    `text` may be an excerpt of a big file; `first_line` is then the number of its first line.
    """

    name: str
    text: str
    first_line: int = 1

    @classmethod
    def of_statement(cls, relation: str, text: str) -> "SourceFile":
        """Return the statement of SQL that a program keeps of a relation."""
        return cls(f"SQL of {relation}", text)

    @property
    def is_sql(self) -> bool:
        """Whether it is SQL: a file of it, a statement that was given, or one that is kept."""
        return self.name.endswith(".sql") or self.name == "SQL" or self.name.startswith("SQL of ")

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1, without its line break."""
        lines = self.text.split("\n")
        index = number - self.first_line
        return lines[index].removesuffix("\r") if 0 <= index < len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a source file; lines and columns count from 1, the end is exclusive.

    Attributes:
        instance: of a text inside a component, the `.init` that it was made for.
    """

    file: SourceFile
    line: int
    column: int
    end_line: int
    end_column: int
    instance: "Span | None" = None

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}:{self.column}"

    @property
    def is_sql(self) -> bool:
        """Whether it is a span of SQL."""
        return self.file.is_sql

    def to(self, other: "Span") -> "Span":
        """Return the span from the start of this one to the end of another."""
        return replace(self, end_line=other.end_line, end_column=other.end_column)
