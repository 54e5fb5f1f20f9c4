"""The quality bench on the bundled sample; what the figures should be is for the full recordings."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import quality
from bench.counts import compare_with_counts
from bench.figures import Row, Traffic, beside_peers, geometric_means, priors_on_new_traffic
from bench.peers import peers
from bench.replays import Replay, Replays, command, measure
from draftd.cli import _commands
from draftd.demo.sample import SAMPLE, SAMPLE_CORPUS, trace_files
from draftd.native import Model
from draftd.priors import pack_priors
from draftd.replay import ReplayOptions

MATHEMATICS = SAMPLE / "specbench_math.jsonl.gz"


def test_a_quick_run_has_every_row_with_the_command_that_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, page = tmp_path / "figures.json", tmp_path / "figures.md"
    with pytest.raises(SystemExit) as end:
        quality.main(["--quick", "--json", str(written), "--markdown", str(page)])
    printed = capsys.readouterr().out
    report = json.loads(written.read_text())
    assert end.value.code == (1 if any(row["met"] is False for row in report["rows"]) else 0), printed
    assert f"configuration {report['configuration']}" in printed
    for row in report["rows"]:
        assert f"| {row['figure']} | {row['measured']} |" in page.read_text()
        assert row["command"].startswith("draftd replay ") or row["measured"].startswith("not measured")
    assert [cells[0] for cells in report["workloads"]] == [
        *(path.name.removesuffix(".jsonl.gz") for path in trace_files()),
        "geometric mean",
    ]


@pytest.mark.parametrize(
    "options",
    [
        ReplayOptions(requests=3),
        ReplayOptions(requests=3, mean_budget=8),
        ReplayOptions(requests=3, budget=8, min_survival=0.0625, share="none"),
        ReplayOptions(requests=3, concurrency=3),
    ],
)
def test_the_command_of_a_replay_repeats_it(options: ReplayOptions, tmp_path: Path) -> None:
    replay = Replay(MATHEMATICS, options, corpora=(SAMPLE_CORPUS,) if options.mean_budget else ())
    report = tmp_path / "report.json"
    words = [*shlex.split(command([replay]))[1:], "--json", str(report)]
    assert CliRunner().invoke(_commands, words).exit_code == 0
    (repeated,) = json.loads(report.read_text())["workloads"]
    assert repeated["drafts_digest"] == measure(replay).drafts_digest.hex()


def test_replays_that_differ_in_more_than_the_file_have_commands_of_their_own() -> None:
    alike = [Replay(Path("a")), Replay(Path("b"))]
    assert command(alike) == "draftd replay a b --priors none"
    assert command([*alike, Replay(Path("c"), priors=Path("p"))]) == (
        "draftd replay a b --priors none && draftd replay c --priors p"
    )


def test_the_best_peer_may_be_one_that_was_told_the_prompts() -> None:
    assert peers().best("math_tool_tora", 16) == ("SGLang 0.5.23 BFS, prompts inserted", 4.0614)
    assert peers().best("code_edit_swe", 16) == ("ArcticInference 0.3.0 wide tree", 2.2647)
    assert peers().best("rl_game24", 8) == ("SGLang 0.5.23 BFS", 4.3134)


def test_peers_have_figures_of_every_workload() -> None:
    for tables in (peers().tokens_per_step, peers().accepted_per_node):
        for of_budget in tables.values():
            for peer, figures in of_budget.items():
                missing = peers().emitted.keys() - figures.keys()
                assert figures.keys() <= peers().emitted.keys()
                assert not missing or peer == "SGLang 0.5.23 BFS, prompts inserted"  # turns have the others' prompts


def test_only_whole_recordings_are_put_beside_peers(tmp_path: Path) -> None:
    traffic = Traffic([MATHEMATICS], {}, tmp_path)
    with Replays() as replays:
        at_16, at_8 = beside_peers(replays, traffic)
        (part, _) = beside_peers(replays, replace(traffic, requests=5))
        means = geometric_means(replays, traffic)
    assert re.fullmatch(r"\d\.\d{3}x \(specbench_math\)", at_16.measured)
    assert at_16.met is not None
    assert at_8.command.endswith("--budget 8 --priors none")
    assert (part.measured, part.met) == ("no whole recording", None)
    assert all(row.met is None for row in means)  # one workload is not the mean of all


def test_unrelated_corpora_are_all_of_a_corpus_in_parts(tmp_path: Path) -> None:
    parts = Traffic([MATHEMATICS], {"pystdlib": SAMPLE_CORPUS}, tmp_path).unrelated_corpora()
    loaded = [np.load(part) for part in parts]
    with np.load(SAMPLE_CORPUS) as whole:
        assert np.array_equal(np.concatenate([part["token_ids"] for part in loaded]), whole["token_ids"])
        assert sum(len(part["doc_offsets"]) - 1 for part in loaded) == len(whole["doc_offsets"]) - 1
    assert all(part["doc_offsets"][-1] == len(part["token_ids"]) for part in loaded)


def test_priors_are_measured_against_none(tmp_path: Path) -> None:
    start, other = tmp_path / "start", tmp_path / "other"
    model = Model()
    start.write_bytes(pack_priors(model.save()))  # what everybody has who has no priors
    contrary = Model(
        hits=model.hits,
        trials=model.trials,
        agreement=-model.agreement,
        standing=model.standing,
        correction=model.correction,
        lessons=0,
    )
    other.write_bytes(pack_priors(contrary.save()))
    traffic = Traffic([MATHEMATICS], {}, tmp_path, requests=10)
    with Replays() as replays:
        (without,) = priors_on_new_traffic(replays, traffic)
        (same,) = priors_on_new_traffic(replays, replace(traffic, priors={"specbench_math": start}))
        (worse,) = priors_on_new_traffic(replays, replace(traffic, priors={"specbench_math": other}))
    assert without.measured == "not measured: no priors were given"
    assert same.measured == "1.0000x, mean of 1 workloads; 1.000x to 1.000x"
    assert same.command.endswith(f"--requests 10 --budget 16 --priors {start}")
    assert float(worse.measured.partition("x")[0]) < 1


def test_counts_at_their_word_are_judged_on_the_same_nodes() -> None:
    stated, counted = compare_with_counts(Replay(MATHEMATICS, ReplayOptions(requests=10)))
    assert stated.nodes == counted.nodes > 100
    assert stated.brier_score < counted.brier_score  # one occurrence after a match counts as certain
    assert 0.5 < (counted.auc or 0) < 1


def test_a_missed_target_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quality, "FIGURES", (lambda *_: [Row("speed", "slow", "fast", met=False)],))
    monkeypatch.setattr(quality, "workload_cells", lambda *_: [])
    with pytest.raises(SystemExit) as end:
        quality.main(["--quick"])
    assert end.value.code == 1
    assert "NO" in capsys.readouterr().out
