"""The language of the scenario files: one statement a line, `#` starts a comment.

    command subject... name=value... -> expectation...

A value is a number, a word, or a list without blanks: `[1,2]`, `[a,b]`, `[[1,2],[3]]`. The rows of a `step` follow it
on indented lines of their own. `player.py` says what each command does, `expectations.py` what may be expected of it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TERM = re.compile(r"(?P<name>[a-z_]+)(?P<relation>>=|<=|=)(?P<value>\S+)")


class ScenarioError(AssertionError):
    """A scenario that can't be read or doesn't hold; says in which file and line."""


@dataclass(frozen=True)
class Term:
    """`name=value`, `name<=value`, `name>=value`, or a word alone (relation "")."""

    name: str
    relation: str
    value: Any


@dataclass
class Statement:
    path: Path
    line: int
    source: str
    words: list[str]
    """The command and its subjects."""

    arguments: dict[str, Any]
    expected: list[Term]
    rows: list["Statement"] = field(default_factory=list)

    @property
    def command(self) -> str:
        return self.words[0]

    @property
    def subject(self) -> str:
        if len(self.words) < 2:
            raise self.error("names no request")
        return self.words[1]

    @property
    def expected_words(self) -> list[str]:
        return [term.name for term in self.expected if not term.relation]

    def refuse_other_words(self, known: set[str] | None) -> None:
        other = self.arguments.keys() - known if known is not None else set()
        if other:
            raise self.error(f"{self.command} knows no {sorted(other)[0]}")

    def error(self, what: str) -> ScenarioError:
        return ScenarioError(f"{self.path}:{self.line}: {self.source.strip()}: {what}")


def read(path: Path) -> list[Statement]:
    """The statements of a file, rows below their step."""
    statements: list[Statement] = []
    for statement, indented in _lines(path):
        if not indented:
            statements.append(statement)
        elif statements and statements[-1].command == "step":
            statement.words.insert(0, "row")
            statements[-1].rows.append(statement)
        else:
            raise statement.error("is indented, but below no step")
    return statements


def _lines(path: Path) -> Iterator[tuple[Statement, bool]]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        content = line.split("#")[0].rstrip()
        if content:
            yield _statement(path, number, content), content.startswith(" ")


def _statement(path: Path, number: int, content: str) -> Statement:
    said, _, expected = content.partition(" -> ")
    terms = [_term(word) for word in said.split()]
    return Statement(
        path=path,
        line=number,
        source=content,
        words=[term.name for term in terms if not term.relation],
        arguments={term.name: term.value for term in terms if term.relation},
        expected=[_term(word) for word in expected.split()],
    )


def _term(word: str) -> Term:
    match = _TERM.fullmatch(word)
    if match is None:
        return Term(word, "", None)
    return Term(match["name"], match["relation"], _value(match["value"]))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text[1:-1].split(",") if text.startswith("[") else text
