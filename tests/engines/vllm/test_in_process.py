"""A real engine in this process: whatever the drafter does, the output is that of no speculation."""

import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np
import pytest
from vllm.sampling_params import StructuredOutputsParams

from draftd.adapters.requests import Figures
from draftd.adapters.vllm import DraftdProposer
from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine as DraftEngine
from draftd.replay.budgets import FixedBudget
from draftd.replay.client_drafter import ClientDrafter
from draftd.replay.result import ReplayResult
from draftd.replay.runner import replay
from draftd.replay.traces import RecordedRequest
from tests.engines.vllm.engine import LONGEST, MOST_TOKENS, Engine
from tests.faults.process import ServerProcess, until

Tokens = list[list[int]]


def figures(proposer: DraftdProposer) -> Figures:
    return proposer.asking.requests.figures


def test_as_many_tokens_are_accepted_as_a_replay_of_the_same_tokens_says(
    drafting: Engine, server: ServerProcess, prompts: Tokens, reference: Tokens
) -> None:
    proposer = drafting.draft_from(server.zmq)
    assert drafting.generate(prompts) == reference

    steps = figures(proposer).steps - len(prompts)  # the first token comes from prefill
    accepted = sum(map(len, reference)) - len(prompts) - steps
    expected = replayed(prompts, reference)
    assert expected.accepted > 0.2 * expected.steps, "too little to compare"
    assert accepted / steps >= 0.9 * expected.accepted / expected.steps
    counters = proposer.client.health().counters
    assert (counters.syncs, counters.hellos) == (len(prompts), 1)


def replayed(prompts: Tokens, outputs: Tokens) -> ReplayResult:
    engine = DraftEngine(EngineSettings())
    result = ReplayResult("vllm")
    recorded = [
        RecordedRequest(str(row), np.array(prompt, np.int32), np.array(output, np.int32), str(row))
        for row, (prompt, output) in enumerate(zip(prompts, outputs, strict=True))
    ]
    with LocalClient(engine) as client:
        drafter = ClientDrafter(client, shape="chain")
        replay(recorded, drafter, FixedBudget(MOST_TOKENS), result, concurrency=len(prompts))
    engine.close()
    return result


def test_a_killed_drafter_drafts_again_once_it_is_back(
    drafting: Engine, server: ServerProcess, prompts: Tokens, reference: Tokens
) -> None:
    proposer = drafting.draft_from(server.zmq, deadline=0.05)

    def during(step: int) -> None:
        if step == 6:
            server.kill()
        if step == 12:
            server.start()

    assert drafting.generate(prompts, during=during) == reference
    assert proposer.client.health().counters.unreachable > 0

    def drafts_again() -> bool:
        before = figures(proposer).accepted
        assert drafting.generate(prompts, 32) == [output[:32] for output in reference]
        return figures(proposer).accepted > before

    until(drafts_again)


def test_drafts_that_are_late_are_done_without(
    drafting: Engine, server: ServerProcess, prompts: Tokens, reference: Tokens
) -> None:
    proposer = drafting.draft_from(server.zmq, deadline=0.001)

    def during(step: int) -> None:
        if step == 4:
            server.freeze()  # so that some are late on any machine
        if step == 8:
            server.thaw()

    assert drafting.generate(prompts, during=during) == reference
    assert proposer.client.health().counters.late > 0


def test_junk_is_harmless(drafting: Engine, tmp_path: Path, prompts: Tokens, reference: Tokens) -> None:
    endpoint = f"ipc://{tmp_path}/junk.sock"
    with Popen([sys.executable, "-m", "tests.engines.vllm.junk_server", endpoint]) as junk:
        proposer = drafting.draft_from(endpoint, deadline=0.2)
        assert drafting.generate(prompts) == reference
        junk.terminate()
    counters = proposer.client.health().counters
    assert min(counters.refused, counters.unknown_frames, counters.late, counters.steps) > 0, counters
    assert figures(proposer).verified > 0, "some of the junk was of a kind that only the target can tell"


def test_texts_may_reach_the_longest_length(
    plain: Engine, drafting: Engine, server: ServerProcess, prompts: Tokens
) -> None:
    lengths = [1000, 1020, 1023, 300]
    long = [(prompts[row] + prompts[row + 1])[-length:] for row, length in enumerate(lengths)]
    expected = plain.generate(long, ignore_eos=True)
    assert [len(text) + len(output) for text, output in zip(long, expected, strict=True)] == [
        LONGEST,
        LONGEST,
        LONGEST,
        428,
    ]
    proposer = drafting.draft_from(server.zmq)
    assert drafting.generate(long, ignore_eos=True) == expected
    assert figures(proposer).accepted > 0


def test_preempted_requests_go_on_where_they_were(
    cramped: Engine,
    server: ServerProcess,
    monkeypatch: pytest.MonkeyPatch,
    prompts: Tokens,
    reference: Tokens,
) -> None:
    preempted: list[str] = []
    preempt = cramped.core.scheduler._preempt_request

    def preempt_and_note(request: Any, *arguments: Any, **named: Any) -> None:
        preempted.append(request.request_id)
        preempt(request, *arguments, **named)

    monkeypatch.setattr(cramped.core.scheduler, "_preempt_request", preempt_and_note)
    proposer = cramped.draft_from(server.zmq)
    assert cramped.generate(prompts) == reference
    assert preempted
    assert proposer.client.health().counters.syncs == len(prompts), "each was opened once: preempted ones were kept"
    assert figures(proposer).accepted > 0


def test_outputs_end_at_stop_tokens(
    drafting: Engine, server: ServerProcess, prompts: Tokens, reference: Tokens
) -> None:
    stop = reference[0][len(reference[0]) // 2]
    drafting.draft_from(server.zmq)
    expected = [output[: output.index(stop) + 1] if stop in output else output for output in reference]
    assert drafting.generate(prompts, stop_token_ids=[stop]) == expected


def test_a_grammar_cuts_drafts(plain: Engine, drafting: Engine, server: ServerProcess, prompts: Tokens) -> None:
    grammar = StructuredOutputsParams(regex="([a-z]{3,9} ){40}")
    expected = plain.generate(prompts[:2], 64, structured_outputs=grammar)
    proposer = drafting.draft_from(server.zmq)
    assert drafting.generate(prompts[:2], 64, structured_outputs=grammar) == expected
    assert 0 < figures(proposer).verified < figures(proposer).drafted
