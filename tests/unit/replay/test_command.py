"""Replays through an engine in process and at a server."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from draftd.config import DraftingSettings
from draftd.demo.sample import SAMPLE, SAMPLE_CORPUS
from draftd.demo.server import running_server
from draftd.ingest import IngestError
from draftd.replay import ReplayError, ReplayOptions, ReplayResult, TraceError, compare, options, replay_file, run
from draftd.replay.budgets import FixedBudget
from draftd.replay.client_drafter import Shape, Share
from draftd.replay.runner import replay
from draftd.replay.sessions import at_server, in_process
from draftd.replay.source_drafter import drafter_named
from draftd.replay.traces import read_trace
from draftd.sources import Ngram, Registry

MATHEMATICS = SAMPLE / "specbench_math.jsonl.gz"


def head(source: Path, lines: int, folder: Path) -> Path:
    """The first lines of a recording, as a file of its own."""
    file = folder / source.name.removesuffix(".gz")
    with gzip.open(source, "rt") as recorded:
        file.write_text("".join(next(recorded) for _ in range(lines)))
    return file


def counts(result: ReplayResult) -> tuple[int, ...]:
    return (result.requests, result.steps, result.emitted, result.accepted, result.drafted, result.covered_steps)


@pytest.mark.parametrize(
    ("recording", "requests"),
    [
        ("agent_tau_airline", 20),
        ("math_tool_tora", 40),
        ("rl_code_humaneval", 60),
        ("rl_game24", 60),
        ("specbench_mtbench", 20),
    ],
)
def test_a_server_gives_exactly_the_drafts_of_an_engine_in_process(
    recording: str, requests: int, tmp_path: Path
) -> None:
    file = head(SAMPLE / f"{recording}.jsonl.gz", requests, tmp_path)
    with in_process("w", corpora={}) as client:
        local = replay_file(file, client, ReplayOptions(budget=16))
    with running_server() as server, at_server("w", server.endpoint) as client:
        remote = replay_file(file, client, ReplayOptions(budget=16))
    assert remote.drafts_digest == local.drafts_digest  # tokens, parents and survival of every step
    assert counts(remote) == counts(local)
    assert local.emitted == sum(len(json.loads(line)["output_token_ids"]) - 1 for line in file.read_text().splitlines())


def test_drafts_that_differ_in_anything_have_another_digest(tmp_path: Path) -> None:
    file = head(MATHEMATICS, 5, tmp_path)
    digests = []
    for budget in (8, 9, 9):
        with in_process("w", corpora={}) as client:
            digests.append(replay_file(file, client, ReplayOptions(budget=budget)).drafts_digest)
    assert digests[0] != digests[1] == digests[2]


def test_two_replays_at_one_server_do_not_help_each_other(tmp_path: Path) -> None:
    file = head(MATHEMATICS, 10, tmp_path)
    results = []
    with running_server() as server:
        for _ in range(2):
            with at_server("w", server.endpoint) as client:
                results.append(replay_file(file, client, ReplayOptions(budget=8)))
    assert results[0].drafts_digest == results[1].drafts_digest


@pytest.mark.parametrize("recording", ["rl_game24", "specbench_mtbench"])
def test_requests_at_once_give_the_same_drafts_in_every_replay(recording: str, tmp_path: Path) -> None:
    file = head(SAMPLE / f"{recording}.jsonl.gz", 40, tmp_path)
    results = []
    for _ in range(2):
        with in_process("w", corpora={}) as client:
            results.append(replay_file(file, client, ReplayOptions(concurrency=8)))
    # A server writes histories now and then, and begins the flight anew by that: of it only what was said is the same.
    with running_server() as server, at_server("w", server.endpoint) as client:
        served = replay_file(file, client, ReplayOptions(concurrency=8))
    assert results[0].drafts_digest == results[1].drafts_digest
    assert counts(results[0]) == counts(results[1])
    said = sum(len(json.loads(line)["output_token_ids"]) - 1 for line in file.read_text().splitlines())
    assert {(result.requests, result.emitted) for result in (*results, served)} == {(40, said)}


def test_requests_at_once_share_messages_but_not_steps(tmp_path: Path) -> None:
    file = head(SAMPLE / "rl_game24.jsonl.gz", 32, tmp_path)
    unlearning = DraftingSettings(learning=False)
    with in_process("w", corpora={}, drafting=unlearning) as client:
        result = replay_file(file, client, ReplayOptions(concurrency=16, share="none"))
    with in_process("w", corpora={}, drafting=unlearning) as client:
        alone = replay_file(file, client, ReplayOptions(share="none"))
    assert counts(result) == counts(alone)  # nothing is shared: what others do changes no draft
    assert 10 * len(result.core_micros) < result.steps


def test_requests_at_once_read_each_other_unless_switched_off(tmp_path: Path) -> None:
    file = head(SAMPLE / "rl_game24.jsonl.gz", 32, tmp_path)
    emitted = {}
    for in_flight in (True, False):
        (result,) = run([file], ReplayOptions(concurrency=16), in_flight=in_flight)
        emitted[in_flight] = result.emitted_per_step
    assert emitted[False] < emitted[True]


def test_nodes_below_the_threshold_are_not_drafted(tmp_path: Path) -> None:
    file = head(MATHEMATICS, 10, tmp_path)
    with in_process("w", corpora={}) as client:
        result = replay_file(file, client, ReplayOptions(min_survival=0.25))
    assert 0 < result.nodes_per_step < 8
    assert result.calibration.bucket_nodes[:5].sum() == 0


def test_every_node_is_judged_and_has_a_depth(tmp_path: Path) -> None:
    with in_process("w", corpora={}) as client:
        result = replay_file(head(MATHEMATICS, 10, tmp_path), client)
    assert result.calibration.nodes == sum(result.positions.nodes) == result.drafted
    assert sum(result.positions.accepted_steps) == result.accepted
    assert result.positions.accepted_steps[0] == result.covered_steps
    assert 0.5 < (result.calibration.auc or 0) < 1


def test_a_mean_budget_is_kept_and_used(tmp_path: Path) -> None:
    with in_process("w", corpora={}) as client:
        result = replay_file(head(MATHEMATICS, 20, tmp_path), client, ReplayOptions(mean_budget=8))
    assert 6 < result.nodes_per_step <= 8


def test_a_chain_yields_less_than_a_tree(tmp_path: Path) -> None:
    file = head(SAMPLE / "rl_code_humaneval.jsonl.gz", 60, tmp_path)
    emitted = {}
    shapes: tuple[Shape, ...] = ("tree", "chain")
    for shape in shapes:
        with in_process("w", corpora={}) as client:
            emitted[shape] = replay_file(file, client, ReplayOptions(budget=16, shape=shape)).emitted_per_step
    assert emitted["chain"] < emitted["tree"]


def test_sharing_outputs_helps_later_samples_of_the_same_prompt(tmp_path: Path) -> None:
    file = head(SAMPLE / "rl_game24.jsonl.gz", 32, tmp_path)
    emitted = {}
    shares: tuple[Share, ...] = ("outputs", "none")
    for share in shares:
        with in_process("w", corpora={}) as client:
            emitted[share] = replay_file(file, client, ReplayOptions(budget=16, share=share)).emitted_per_step
    assert emitted["none"] < emitted["outputs"]


def test_a_corpus_of_the_domain_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = head(SAMPLE / "math_gsm8k_multi.jsonl.gz", 80, tmp_path)
    (alone,) = run([file], ReplayOptions(budget=16))
    (helped,) = run([file], ReplayOptions(budget=16), corpora=[SAMPLE_CORPUS])
    assert helped.emitted_per_step > alone.emitted_per_step
    assert "math_gsm8k_multi" in capsys.readouterr().out


def test_the_json_holds_settings_figures_and_their_mean(tmp_path: Path) -> None:
    file, report = head(MATHEMATICS, 5, tmp_path), tmp_path / "report.json"
    (result,) = run([file], ReplayOptions(budget=8), json_file=report)
    written = json.loads(report.read_text())
    assert written["settings"]["budget"] == 8
    assert [written["settings"][name] for name in ("endpoint", "corpora", "in_flight", "priors")] == [
        None,
        [],
        True,
        "shipped",
    ]
    assert written["workloads"] == [result.as_dict()]
    assert written["geometric_mean"] == pytest.approx(result.emitted_per_step)


def test_wishes_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    file = head(MATHEMATICS, 1, tmp_path)
    with pytest.raises(ReplayError, match="not both"):
        ReplayOptions(budget=8, mean_budget=8)
    with pytest.raises(ReplayError, match="draftd corpus add"):
        run([file], endpoint="ipc:///nowhere", corpora=[SAMPLE_CORPUS])
    with pytest.raises(ReplayError, match=r"history\.in_flight"):
        run([file], endpoint="ipc:///nowhere", in_flight=False)
    with pytest.raises(ReplayError, match=r"drafting\.priors"):
        run([file], endpoint="ipc:///nowhere", priors="none")


def test_priors_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    file, damaged = head(MATHEMATICS, 1, tmp_path), tmp_path / "damaged"
    damaged.write_bytes(b"no priors")
    for priors in (damaged, tmp_path / "absent"):
        with pytest.raises(ReplayError, match=f"^priors {priors}: "):
            run([file], priors=str(priors))


def test_a_corpus_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", token_ids=np.array([1, 2, 3]), doc_offsets=np.array([0, 2]))
    with pytest.raises(IngestError, match="doc_offsets"):
        run([head(MATHEMATICS, 1, tmp_path)], corpora=[tmp_path / "bad.npz"])


@pytest.mark.parametrize("option", ["--json", "--svg"])
def test_a_file_that_cannot_be_written_is_said_before_anything_is_replayed(option: str, tmp_path: Path) -> None:
    words = ["replay", str(tmp_path / "absent.jsonl"), option, str(tmp_path / "absent" / "out")]
    command = subprocess.run([sys.executable, "-m", "draftd", *words], capture_output=True, text=True, check=False)
    assert command.stderr.startswith("draftd: the results cannot be written: ")
    assert str(tmp_path / "absent" / "out") in command.stderr


def test_a_replay_that_fails_leaves_results_as_they_were(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("old")
    for report in (old, new):
        with pytest.raises(TraceError):
            run([tmp_path / "absent.jsonl"], json_file=report)
    assert old.read_text() == "old"
    assert not new.exists()


def test_the_command_names_file_and_line_of_a_bad_recording(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "r", "prompt_token_ids": [1], "output_token_ids": [-1]}\n')
    command = subprocess.run(
        [sys.executable, "-m", "draftd", "replay", str(bad)], capture_output=True, text=True, check=False
    )
    assert command.returncode == 1
    assert command.stderr.startswith(f"draftd: {bad}:1: `output_token_ids` must be")
    assert command.stderr.count("\n") == 1


def test_presets_are_compared_over_the_same_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [head(MATHEMATICS, 3, tmp_path), head(SAMPLE / "rl_game24.jsonl.gz", 8, tmp_path)]
    report = tmp_path / "report.json"
    results = compare(files, ReplayOptions(budget=8), ["learned", "ngram_bfs", "ngram"], json_file=report)
    printed = capsys.readouterr().out
    written = json.loads(report.read_text())
    for preset, of_preset in results.items():
        assert [result.workload for result in of_preset] == ["specbench_math", "rl_game24"]
        assert preset in printed
        for result in of_preset:
            assert f"{result.emitted_per_step:.3f} | {result.nodes_per_step:4.1f}" in printed
        assert written["presets"][preset]["workloads"] == [result.as_dict() for result in of_preset]
    assert len({result[0].drafts_digest for result in results.values()}) == 3
    assert {result[1].emitted for result in results.values()} == {results["learned"][1].emitted}


def test_one_draft_source_is_replayed_alone(tmp_path: Path) -> None:
    file = head(MATHEMATICS, 3, tmp_path)
    (looked_up,) = run([file], ReplayOptions(budget=8).drafted_by("ngram"))
    lookup = ReplayResult("specbench_math")
    with drafter_named("ngram") as drafter:
        replay(read_trace(file), drafter, FixedBudget(8), lookup)
    assert looked_up.drafts_digest == lookup.drafts_digest
    assert looked_up.as_dict()["calibration"] is None


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ReplayError, match=r"'best'; choose one of learned, suffix_decoding, .*, ngram"):
        ReplayOptions().drafted_by("best")


def test_a_draft_source_with_the_name_of_a_preset_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = Registry()
    sources.register("learned")(Ngram)
    monkeypatch.setattr(options, "REGISTRY", sources)
    with pytest.raises(ReplayError, match="'learned' is a preset, and a draft source that is installed"):
        ReplayOptions().drafted_by("learned")
    assert ReplayOptions().drafted_by("ngram_bfs").preset == "ngram_bfs"
