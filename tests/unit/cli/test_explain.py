"""`draftd explain`, as a process, against a real server; and how its answer is drawn."""

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from draftd.cli.explanation import rendered
from tests.unit.cli.processes import COMMAND, SECONDS, Served, draftd, environment, only_line, serving
from tests.unit.ingest.posts import word_tokenizer

DOCUMENTS = '{"text": "the cat sat on a mat", "id": "story-1"}\n{"text": "the cat sat on the cat", "id": "story-2"}\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    tokenizers = json.dumps([{"tenant": "text", "path": str(word_tokenizer(folder))}])
    (folder / "stories.jsonl").write_text(DOCUMENTS)
    (folder / "ids.jsonl").write_text('{"token_ids": [1, 2, 3], "id": "ids"}\n')
    with serving(folder / "data", DRAFTD_TOKENIZERS=tokenizers) as served:
        server = ("--http", served.endpoints["http"])
        assert draftd("corpus", "add", "docs", folder / "stories.jsonl", *server, "--tenant", "text").returncode == 0
        assert draftd("corpus", "add", "docs", folder / "ids.jsonl", *server).returncode == 0
        yield served


@pytest.fixture
def server(served: Served) -> tuple[str, ...]:
    return ("--http", served.endpoints["http"])


def test_a_draft_is_drawn_with_what_is_known_of_each_node(server: tuple[str, ...]) -> None:
    shown = draftd("explain", "--text", "the cat sat on", "--nodes", "2", *server, "--tenant", "text")
    assert shown.returncode == 0, shown.stderr
    header, _, nodes = shown.stdout.partition("count/total  document")
    assert "4 tokens of context, 2 nodes\n" in header
    assert "corpus docs: 12 tokens in 2 documents\n" in header
    first, second = nodes.strip().splitlines()
    assert first.split()[:2] == ["'", "the'"]
    assert "corpus docs      4          1/2  story-2, token 4" in first
    assert "corpus docs      4          1/2  story-1, token 4" in second


def test_text_comes_from_standard_input_or_a_file_and_json_is_for_machines(
    server: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("the cat")
    asked = ("explain", "--chain", "--nodes", "3", "--stop-id", "4", "--json", *server, "--tenant", "text")
    by_file = draftd(*asked, "--file", tmp_path / "text")
    piped = subprocess.run(
        [*COMMAND, *asked],
        input="the cat",
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
        env=environment({}),
    )
    assert piped.stdout == by_file.stdout
    reply = json.loads(piped.stdout)
    assert [(node["text"], node["parent"]) for node in reply["nodes"]] == [(" sat", -1), (" on", 0)]


@pytest.mark.parametrize(
    ("options", "drafted"),
    [
        (["--nodes", "3"], ["the", "a", "cat"]),
        (["--max-depth", "1"], ["the", "a"]),
        (["--max-breadth", "1", "--nodes", "3"], ["the", "cat", "sat"]),
        (["--min-survival", "1"], []),
        (["--preset", "suffix_decoding", "--max-spec-factor", "0.25"], ["the"]),
        (["--preset", "suffix_decoding", "--min-token-prob", "1"], []),
        (["--nodes", "100000", "--max-depth", "1"], ["the", "a"]),
    ],
)
def test_all_that_a_request_may_state_of_its_trees_can_be_asked(
    options: list[str], drafted: list[str], server: tuple[str, ...]
) -> None:
    asked = draftd("explain", "--text", "the cat sat on", "--json", *options, *server, "--tenant", "text")
    assert [node["text"].strip() for node in json.loads(asked.stdout)["nodes"]] == drafted, asked.stderr


def test_ids_are_shown_where_no_tokenizer_is_known(server: tuple[str, ...]) -> None:
    shown = draftd("explain", "--tokens", "1, 2", "--nodes", "1", *server)
    assert shown.stdout.splitlines()[-1].split()[0] == "3"
    assert "own text: 1 token\n" in draftd("explain", "--tokens", "1", *server).stdout
    empty = draftd("explain", "--tokens", "8", *server)
    assert "1 token of context, an empty draft: nothing that it reads says how the text goes on" in empty.stdout


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--tokens", "1 x"], "--tokens: 'x' is no token id; give them like '1 2 3'"),
        (["--tokens", "1", "--text", "x"], "give one of --text, --file and --tokens"),
        (["--file", "/absent"], "/absent: No such file or directory"),
        (["--text", "x"], "text needs a tokenizer, and none is configured"),
        (["--tokens", "-4"], "token_ids: token 0 is -4, outside"),
        (["--tokens", "1", "--corpus", "other"], "no corpus 'other' in namespace default/default; it has: docs"),
        (["--tokens", "1", "--tenant", "nobody"], "nothing is known of namespace nobody/default"),
        (["--tokens", "1", "--nodes", "0"], "--nodes"),
        (["--tokens", "1", "--preset", "best"], "Invalid value for '--preset': 'best' is not one of 'learned', 'suff"),
        (["--tokens", "1", "--max-spec-factor", "2"], "max_spec_factor: is for SUFFIX_DECODING; the preset is LEARNED"),
        (["--tokens", "1", "--min-survival", "2"], "--min-survival"),
        (["--tokens", "1", "--http", "127.0.0.1:1"], "is a server running there?"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given: list[str], complaint: str, server: tuple[str, ...]) -> None:
    assert complaint in only_line(draftd("explain", *server, *given))


def test_a_file_that_is_no_text_is_named(server: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"ab\xff")
    assert "bytes: not UTF-8 at byte 2" in only_line(draftd("explain", *server, "--file", tmp_path / "bytes"))


def drawn(nodes: list[dict[str, Any]]) -> list[str]:
    """The lines of the table, without its head."""
    console = Console(width=200, file=io.StringIO())
    console.print(rendered({"message": "", "sources": [], "nodes": nodes}))
    assert isinstance(console.file, io.StringIO)
    _, _, table = console.file.getvalue().partition("document")
    return [line.rstrip() for line in table.splitlines()[1:]]


def node(
    token: int, parent: int, text: str | None = None, evidence: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    return {
        "token_id": token,
        "text": text,
        "parent": parent,
        "survival": 0.5,
        "source": "shared_history",
        "evidence": evidence or [],
    }


def test_children_stand_below_their_parent_however_late_they_were_drafted() -> None:
    lines = drawn([node(1, -1), node(2, 0), node(3, -1), node(4, 1), node(5, 0)])
    assert [line.partition("0.500")[0].rstrip() for line in lines] == ["1", "├ 2", "│ └ 4", "└ 5", "3"]


def test_what_tokens_and_labels_hold_is_shown_as_it_is() -> None:
    """Neither the terminal nor the drawing takes it as a command."""
    evidence = {
        "source": "shared_history",
        "corpus_id": None,
        "running": False,
        "match_length": 1,
        "count": 1000,
        "total": 2000,
        "document": "[bold]x[/bold]",
        "position": 7,
        "time": 0,
    }
    running = evidence | {"running": True, "document": None, "position": None, "time": None}
    (line, further) = drawn([node(1, -1, "\x1b[31m[red]\n", [evidence, running])])
    assert r"'\x1b[31m[red]\n'" in line
    assert "1,000/2,000  [bold]x[/bold], token 7, 1970-01-01 00:00 UTC" in line
    assert further.split() == ["history,", "running", "1", "1,000/2,000"]
