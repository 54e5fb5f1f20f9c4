"""An explanation for a person: the draft's tree, and beside each node who knows it from where."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from draftd.observe.words import counted

Reply = dict[str, Any]  # of POST /explain; docs/http.md

_SOURCES = {
    "own_text": "own text",
    "shared_history": "history",
    "group_history": "group's history",
    "corpus": "corpus",
    "fill": "frequent",
}
_BAR = 8  # characters
_EIGHTHS = " ▏▎▍▌▋▊▉"


def rendered(reply: Reply) -> RenderableType:
    """Rows without a token tell what further sources know of the node above them."""
    read = [f"  {_source(source)}: {_extent(source)}" for source in reply["sources"]]
    header = Text("\n".join([reply["message"], "read:", *read]))
    return Group(header, _table(reply["nodes"])) if reply["nodes"] else header


def _table(nodes: list[Reply]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("token", "survival", "source", "match", "count/total", "document"):
        numbers = name in ("match", "count/total")
        table.add_column(name, justify="right" if numbers else "left", no_wrap=True, overflow="ellipsis")
    for node, branch in _in_order(nodes):
        survival = Text(f"{node['survival']:.3f} ").append(_bar(node["survival"]), "cyan")
        known = [_knows(evidence) for evidence in _best_first(node)] or [[Text(_SOURCES[node["source"]])]]
        table.add_row(Text(branch).append(_token(node), "bold"), survival, *known[0])
        for further in known[1:]:
            table.add_row("", "", *further, style="dim")
    return table


def _in_order(nodes: list[Reply]) -> Iterator[tuple[Reply, str]]:
    """The nodes with what is above them first, each with the lines that lead to it."""
    children: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node["parent"], []).append(number)
    waiting = [(child, "", True) for child in reversed(children.get(-1, []))]
    while waiting:
        number, indent, top = waiting.pop()
        siblings = children[nodes[number]["parent"]]
        last = number == siblings[-1]
        yield nodes[number], indent if top else indent + ("└ " if last else "├ ")
        below = "" if top else indent + ("  " if last else "│ ")
        waiting += [(child, below, False) for child in reversed(children.get(number, []))]


def _best_first(node: Reply) -> list[Reply]:
    """What the source that proposed the node knows comes first."""
    return sorted(node["evidence"], key=lambda evidence: evidence["source"] != node["source"])


def _knows(evidence: Reply) -> list[Text]:
    counts = f"{evidence['count']:,}/{evidence['total']:,}"
    return [Text(cell) for cell in (_source(evidence), str(evidence["match_length"]), counts, _place(evidence))]


def _source(source: Reply) -> str:
    name = _SOURCES[source["source"]] + (", running" if source["running"] else "")
    return name if source["corpus_id"] is None else f"{name} {source['corpus_id']}"


def _extent(source: Reply) -> str:
    tokens = f"{source['tokens']:,} {'token' if source['tokens'] == 1 else 'tokens'}"
    return (
        tokens
        if source["source"] == "own_text" or source["running"]
        else f"{tokens} in {counted(source['documents'], 'document')}"
    )


def _place(evidence: Reply) -> str:
    if evidence["position"] is None:
        return ""
    token = f"token {evidence['position']:,}"
    if evidence["source"] == "own_text":
        return token
    when = f"{datetime.fromtimestamp(evidence['time'], UTC):%Y-%m-%d %H:%M} UTC"
    return f"{evidence['document'] or 'without an id'}, {token}, {when}"


def _token(node: Reply) -> str:
    return str(node["token_id"]) if node["text"] is None else repr(node["text"])


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
