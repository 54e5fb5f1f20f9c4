"""`draftd serve` with draft sources beside its indexes, as a process."""

import urllib.request
from pathlib import Path

import pytest

from draftd.client import Client, Namespace
from tests.unit.cli.processes import SECONDS, draftd, only_line, serving


def metrics(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=SECONDS) as response:
        lines = response.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_a_server_asks_the_source_that_it_is_told_to(tmp_path: Path) -> None:
    config = tmp_path / "draftd.toml"
    config.write_text('[[sources]]\nname = "ngram"\noptions = { shortest = 1 }\nmodel = "ours"\nmilliseconds = 5000\n')
    with serving(tmp_path / "data", "--config", config) as served:
        for model, asked in (("theirs", 0.0), ("ours", 1.0)):
            with Client(served.endpoints["zmq"], Namespace(model=model), deadline=SECONDS) as client:
                draft = client.step({client.open("r", [5, 6, 7, 5, 6, 7, 5]): ()}, max_nodes=4)
                assert [len(it.tokens) > 0 for it in draft.values()] == [True]
            counted = metrics(served.endpoints["http"])
            assert counted['draftd_source_calls_total{outcome="answered",source="ngram"}'] == asked
        assert counted['draftd_source_bytes{source="ngram"}'] > 0
        assert served.stop()[0] == 0


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('name = "nothing"', "there is no draft source 'nothing'"),
        ('name = "ngram"\noptions = { longest = 0 }', "draft source 'ngram' does not start"),
        ('name = "ngram"\nleast_gain = -1', "sources.0.least_gain"),
        ('name = "ngram"\nseconds = 1', "option sources.0.seconds is unknown"),
    ],
)
def test_a_source_that_it_can_not_ask_is_one_line(source: str, complaint: str, tmp_path: Path) -> None:
    config = tmp_path / "draftd.toml"
    config.write_text(f"[[sources]]\n{source}\n")
    line = only_line(draftd("serve", "--data-dir", tmp_path / "data", "--http", "", "--config", config))
    assert complaint in line
