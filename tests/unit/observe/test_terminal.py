"""Names are shown as they stand, in every table, title, status and progress line."""

import ast
from pathlib import Path

import pytest
from rich.progress import Progress
from rich.table import Table

import draftd
from bench import text as bench_text
from draftd.observe import terminal
from draftd.replay.result import ReplayResult
from draftd.replay.table import compared_table, results_table

NAMES = ["[/red]", "[bold]x", "[link=y]z[/link]", ":smile:", r"\[x]"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_command_wherever_it_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    console = terminal.console(width=100)
    table = Table(name, title=name, caption=name)
    table.add_row(name)
    results = [ReplayResult(name)]
    with Progress(terminal.text_column("{task.description}"), console=console) as progress:
        progress.add_task(name)
    for shown in (name, table, results_table(results, name), compared_table({"learned": results}, name)):
        console.print(shown)
    assert capsys.readouterr().out.count(name) == 10


def test_nobody_prints_by_a_console_of_another_make() -> None:
    """Or shows a text of which rich would take brackets as commands."""
    made = {"Console", "TextColumn", "from_markup"}
    sources = [*Path(draftd.__file__).parent.rglob("*.py"), *Path(bench_text.__file__).parent.rglob("*.py")]
    makers = {
        path.name
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and (node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")) in made
    }
    assert makers == {"terminal.py"}
    assert len(sources) > 100
