"""What a scenario may expect of an answer.

STATUS [at POSITION]        first word of open, commit, close and of the rows of a step
empty REASON                no nodes, and why
tokens=[..]                 all nodes, in order
nodes=N  nodes<=N           how many
first=T                     the likeliest node
likeliest=[..]              what following each node's likeliest child begins with
contains=[..] without=[..]  tokens that are, or are not, somewhere in it
leaf=[..]                   tokens that are in it and have nothing below them
survival>=P                 of each of its nodes, and it has some
parents=chain               every node is the child of the one before
siblings=distinct           no node has two children of the same token
"""

from collections.abc import Callable
from typing import Any

from draftd.reference.events import Reason, Status
from tests.property.rows import TailRow
from tests.scenarios.language import Statement


def expect_status(statement: Statement, status: int, detail: int) -> None:
    words = statement.expected_words
    if words[:1] != [Status(status).name]:
        raise statement.error(f"the status is {Status(status).name}")
    if "at" in words and words[words.index("at") + 1] != str(detail):
        raise statement.error(f"the position is {detail}")


def expect_tail(statement: Statement, tail: TailRow) -> None:
    words = statement.expected_words
    if "empty" in words and (tail.tokens or words[words.index("empty") + 1] != Reason(tail.reason).name):
        raise statement.error(f"the tail is {tail.tokens} {Reason(tail.reason).name}")
    for term in statement.expected:
        if not term.relation:
            continue
        holds = CHECKS.get(term.name + term.relation)
        if holds is None:
            raise statement.error(f"nothing of a tail is called {term.name}{term.relation}")
        if not holds(tail, term.value):
            raise statement.error(f"{term.name}: the tail is {tail}")


def likeliest_path(tail: TailRow) -> list[int]:
    path: list[int] = []
    node = -1
    while node in tail.parents:
        children = [child for child, parent in enumerate(tail.parents) if parent == node]
        node = max(children, key=lambda child: tail.survival[child])
        path.append(tail.tokens[node])
    return path


def are_leaves(tail: TailRow, tokens: list[int]) -> bool:
    inner = {tail.tokens[parent] for parent in tail.parents if parent >= 0}
    return set(tokens) <= set(tail.tokens) - inner


CHECKS: dict[str, Callable[[TailRow, Any], bool]] = {
    "tokens=": lambda tail, tokens: tail.tokens == tokens,
    "nodes=": lambda tail, count: len(tail.tokens) == count,
    "nodes<=": lambda tail, count: len(tail.tokens) <= count,
    "first=": lambda tail, token: tail.tokens[:1] == [token],
    "likeliest=": lambda tail, tokens: likeliest_path(tail)[: len(tokens)] == tokens,
    "contains=": lambda tail, tokens: set(tokens) <= set(tail.tokens),
    "without=": lambda tail, tokens: not set(tokens) & set(tail.tokens),
    "leaf=": are_leaves,
    "survival>=": lambda tail, least: bool(tail.survival) and min(tail.survival) >= least,
    "parents=": lambda tail, shape: shape == "chain" and tail.parents == list(range(-1, len(tail.tokens) - 1)),
    "siblings=": lambda tail, _: len(set(zip(tail.parents, tail.tokens, strict=True))) == len(tail.tokens),
}
