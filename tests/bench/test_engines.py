"""What the comparison of proposers counts, times and demands; tests/engines runs it with real engines."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from bench import engines
from bench.engine_figures import BATCH, DRAFTD, LONG_NGRAM, NGRAM, NONE, SUFFIX, Comparison, Run
from bench.engine_prompts import prompts_of
from bench.engine_side import Outcome, Step, Watch, note_step
from draftd.demo.sample import SAMPLE

OUTPUTS = [[1, 2, 3, 4, 5], [6, 7, 8]]
ALONE = [[1, 1, 1, 1], [1, 1]]
HERE = ["--python", sys.executable]  # the engines' environment may not be there


def run(proposer: str, emitted: list[list[int]], at_once: int = BATCH, *, steps: list[Step] | None = None) -> Run:
    drafted = sum(map(len, emitted))
    outcome = Outcome(OUTPUTS, emitted, steps or [], drafted=2 * drafted, accepted=drafted)
    return Run(proposer, at_once, ["code", "chat"], outcome)


def timed(proposer: float, core: float, echo: float) -> list[Step]:
    return [Step(BATCH, 0, {"proposer": proposer, "core": core}), Step(BATCH, 0, {"echo": echo})]


def test_steps_count_from_the_second_token_on() -> None:
    outcome = Outcome([[], []], [[], []])
    note_step(outcome, {0: [1]}, {})  # the other prompt is not through
    note_step(outcome, {0: [2, 3], 1: [6]}, {"proposer": 7.0})
    note_step(outcome, {0: [4], 1: [7, 8]}, {})
    assert outcome.outputs == [[1, 2, 3, 4], [6, 7, 8]]
    assert outcome.emitted == [[2, 1], [2]]
    assert outcome.steps == [Step(1, 1, {}), Step(2, 1, {"proposer": 7.0}), Step(2, 0, {})]


def test_tokens_per_step_are_of_a_workload_or_of_all() -> None:
    measured = run(DRAFTD, [[3, 1], [2]])
    assert [measured.tokens_per_step(name) for name in ("code", "chat", "all")] == [2.0, 2.0, 2.0]
    assert run(DRAFTD, [[4], [1, 1]]).tokens_per_step() == 2.0
    assert run(DRAFTD, [[4], [1, 1]]).coverage() == pytest.approx(1 / 3)


def test_times_are_of_whole_batches_in_which_nothing_began() -> None:
    fewer, opening = Step(BATCH - 1, 0, {"proposer": 9.0}), Step(BATCH, 1, {"proposer": 9.0})
    measured = run(DRAFTD, ALONE, steps=[fewer, opening, *timed(proposer=300.0, core=100.0, echo=80.0)])
    assert measured.micros("proposer") == [300.0]
    assert measured.echoes() == 2.5
    assert run(DRAFTD, ALONE).echoes() is None


def test_the_proposer_and_the_echo_take_turns_in_being_first() -> None:
    order: list[str] = []

    def propose(*, k: int) -> list[list[int]]:
        order.append("propose")
        return [[k]]

    def echo() -> float:
        order.append("echo")
        return 5.0

    watch = Watch(propose, core=lambda: 3, echo=echo)
    assert watch(k=8) == [[8]]
    first = watch.take()
    assert watch(k=9) == [[9]]
    assert (watch.take(), watch.take()) == ({"echo": 5.0}, {})
    assert (first.keys(), first["core"]) == ({"proposer", "core"}, 3.0)
    assert order == ["propose", "echo", "propose"]


@pytest.fixture
def good() -> Comparison:
    """draftd with 2 tokens a step, suffix as many, n-grams of 5 with a third less."""
    emitted = {NONE: ALONE, LONG_NGRAM: [[2, 1, 1], [2, 1, 1]], NGRAM: [[2, 2], [2, 1]], SUFFIX: [[2, 2], [2]]}
    times = timed(proposer=290.0, core=100.0, echo=80.0)
    return Comparison([*(run(*it) for it in emitted.items()), run(DRAFTD, [[2, 2], [2]], steps=times)])


def test_what_is_as_it_should_be_is_not_complained_of(good: Comparison) -> None:
    assert good.missed_targets() == []
    assert good.wrong_outputs() == []


def test_missed_targets_are_named(good: Comparison) -> None:
    slow = run(DRAFTD, [[2, 1, 1], [2]], steps=timed(proposer=400.0, core=100.0, echo=80.0))
    assert Comparison([*good.runs[:-1], slow]).missed_targets() == [
        "code, 8 at once: 0.667x the tokens per step of suffix, 1.0x wanted",
        "code, 8 at once: 1.000x the tokens per step of ngram, 1.3x wanted",
        "all, 8 at once: 0.750x the tokens per step of suffix, 1.0x wanted",
        "all, 8 at once: 1.125x the tokens per step of ngram, 1.3x wanted",
        "proposer beyond the core: 3.75 echoes, at most 2.5 wanted",
    ]


def test_other_tokens_than_without_drafts_are_named(good: Comparison) -> None:
    other = replace(good.runs[-1], outcome=replace(good.runs[-1].outcome, outputs=[OUTPUTS[0], [6, 7, 9]]))
    changed = Comparison([*good.runs[:-1], other])
    assert changed.wrong_outputs() == ["draftd, 8 at once: request 1 got other tokens than without drafts"]
    assert changed.steps_table()[-1][2] == "1 differ"


def test_tables_have_a_line_for_every_part_and_every_run(good: Comparison) -> None:
    heading, *lines = good.tokens_table()
    assert heading[2:] == ["ngram", "ngram 2-5", "suffix", "draftd", *(f"draftd / {it}" for it in heading[2:5])]
    assert lines[0] == ["code", "8", "1.333", "2.000", "2.000", "2.000", "1.50x", "1.00x", "1.00x"]
    assert [line[0] for line in lines] == ["code", "chat", "all"]
    heading, *lines = good.steps_table()
    assert lines[-1] == ["draftd", "8", "identical", "3", "2.000", "100.0%", "2.00", "1.00", "290", "290"]
    assert lines[0][-2:] == ["", ""]  # there is no proposer
    assert len({len(line) for line in good.steps_table()}) == len({len(line) for line in good.tokens_table()}) == 1


def test_what_did_not_run_is_left_out(good: Comparison) -> None:
    without = Comparison([it for it in good.runs if it.proposer in (NONE, DRAFTD)])
    assert without.tokens_table()[0] == ["prompts", "at once", "draftd"]
    assert without.missed_targets() == []
    assert Comparison(good.runs[:1]).round_trip() == ""


def test_the_round_trip_is_told_in_words(good: Comparison) -> None:
    assert (
        "proposer 290 µs, of it 100 µs in the core; a raw echo 80 µs. Beyond the core 2.38 echoes" in good.round_trip()
    )


@pytest.mark.parametrize(("prompts", "status"), [("8", 1), ("2", 0)])
def test_a_missed_target_ends_with_status_1_at_full_size(
    prompts: str,
    status: int,
    good: Comparison,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    short = Comparison([*good.runs[:-1], run(DRAFTD, ALONE)])
    monkeypatch.setattr(engines, "measure", lambda _: short)
    page, written = tmp_path / "page.md", tmp_path / "all.json"
    with pytest.raises(SystemExit) as end:
        engines.main([*HERE, "--prompts", prompts, "--markdown", str(page), "--json", str(written)])
    assert end.value.code == status
    assert ("suffix, 1.0x wanted" in capsys.readouterr().out) == bool(status)
    assert "| code | 8 | 1.333 | 2.000 | 2.000 | 1.000 | 0.75x | 0.50x | 0.50x |" in page.read_text()
    assert [entry["proposer"] for entry in json.loads(written.read_text())] == [it.proposer for it in short.runs]


def test_what_does_not_fit_the_context_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        engines.main([*HERE, "--prompt-tokens", "1000", "--output-tokens", "100"])
    assert end.value.code == 2
    assert "1000 and 100 tokens are more than the 1024 that fit" in capsys.readouterr().err


def test_an_engines_environment_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        engines.main(["--python", "/nowhere/python"])
    assert end.value.code == 2
    assert "/nowhere/python is not there; make it with `make engines`" in capsys.readouterr().err


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """One that knows a few words, and takes each word for a token."""
    words = Tokenizer(WordLevel({"?": 0, "the": 1, "django": 2, "self": 3}, unk_token="?"))
    words.pre_tokenizer = Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_prompts_are_chosen_by_the_seed_in_order_of_arrival(tokenizer: Path) -> None:
    trace = SAMPLE / "code_edit_swe.jsonl.gz"
    everything = prompts_of(trace, tokenizer, 30, 40, seed=0)
    some, others = (prompts_of(trace, tokenizer, 5, 40, seed=seed) for seed in (1, 2))
    places = [everything.index(prompt) for prompt in some]
    assert len(everything) == 30
    assert places == sorted(places)
    assert some == prompts_of(trace, tokenizer, 5, 40, seed=1)
    assert some != others
    assert max(map(len, everything)) == 40
    assert max(max(prompt) for prompt in everything) > 0  # words were known: this is text, in the tokenizer's ids
