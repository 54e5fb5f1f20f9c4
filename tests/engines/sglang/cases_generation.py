"""SGLang's worker, kernels and requests with trees from a real draftd: what is emitted, and what draftd is told."""

import re
import urllib.request

import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.ngram_info import NgramVerifyInput

from tests.engines.sglang.engine import STOP, WIDTH, SglangEngine, decoded, request, rule, start_up
from tests.faults.process import ServerProcess, until


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> ServerArgs:
    return start_up(tmp_path_factory.mktemp("ranks"))


@pytest.fixture
def endpoint(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> ServerProcess:
    monkeypatch.setenv("DRAFTD_ADAPTER_ENDPOINT", server.zmq)
    monkeypatch.setenv("DRAFTD_ADAPTER_DEADLINE", "5")  # seconds
    return server


def figures(server: ServerProcess) -> dict[str, float]:
    """Of the metrics without labels."""
    (address,) = re.findall(r"http (http://\S+)", server.log())
    with urllib.request.urlopen(f"{address}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("breadth", [10, 1])
def test_requests_come_go_and_are_retracted(
    overlap: bool, breadth: int, arguments: ServerArgs, endpoint: ServerProcess
) -> None:
    """Every step compares what SGLang's kernels accept with brute force: see SglangEngine.step."""
    engine = SglangEngine(arguments, overlap=overlap, breadth=breadth)
    a, b, c, d = requests = [request(rid, [n, n + 1, n + 2], 40 + 7 * n) for n, rid in enumerate("abcd")]
    engine.admit(a, b)
    engine.run(steps=3)
    engine.admit(c)
    engine.run(steps=4)
    engine.retract(b)
    engine.run(steps=2)
    engine.admit(b, d)
    engine.run()
    for n, finished in enumerate(requests):
        assert list(finished.output_ids_through_stop) == decoded(finished.origin_input_ids, 40 + 7 * n)
    assert engine.accepted > 2 * engine.steps
    assert engine.target.branched == (breadth > 1)
    until(lambda: figures(endpoint)["draftd_sessions"] == 0)
    told = figures(endpoint)
    assert told["draftd_spec_decode_num_accepted_tokens_total"] == engine.accepted
    assert told["draftd_verify_steps_total"] == engine.steps


@pytest.mark.parametrize("overlap", [True, False])
def test_a_stop_id_ends_the_text_for_draftd_too(overlap: bool, arguments: ServerArgs, endpoint: ServerProcess) -> None:
    def target(text: list[int]) -> int:
        return STOP if len(text) == 40 else rule(text)

    engine = SglangEngine(arguments, overlap=overlap, target=target)
    stopped, other = request("stopped", [1, 2], 60), request("other", [1, 2, 3], 30)
    engine.admit(stopped, other)
    engine.run()
    assert list(stopped.output_ids_through_stop) == [*decoded([1, 2], 38), STOP]
    assert list(other.output_ids_through_stop) == decoded([1, 2, 3], 30)
    until(lambda: figures(endpoint)["draftd_sessions"] == 0)


def test_without_draftd_it_is_plain_decoding(arguments: ServerArgs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_ENDPOINT", "ipc:///nowhere/draftd.sock")
    engine = SglangEngine(arguments, overlap=True)
    alone = request("alone", [1, 2, 3], 20)
    engine.admit(alone)
    engine.run()
    assert list(alone.output_ids_through_stop) == decoded([1, 2, 3], 20)
    assert engine.accepted == 0


def test_draftd_is_killed_and_comes_again(
    arguments: ServerArgs, endpoint: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_DEADLINE", "0.1")
    engine = SglangEngine(arguments, overlap=True)
    long = request("long", [1, 2, 3], 20_000)
    engine.admit(long)

    def accepts() -> bool:
        before = engine.accepted
        engine.step()
        return engine.accepted > before

    until(accepts)
    endpoint.kill()
    engine.step()
    engine.step()  # the last tree of before is processed
    before = engine.accepted
    engine.run(steps=5)
    assert engine.accepted == before
    endpoint.start()
    until(accepts)
    assert list(long.output_ids) == decoded([1, 2, 3], len(long.output_ids))


def test_what_users_choose_ends_no_step(arguments: ServerArgs, endpoint: ServerProcess) -> None:
    """SGLang takes each of these."""

    def target(text: list[int]) -> int:
        return STOP if len(text) == 50 else rule(text)

    engine = SglangEngine(arguments, overlap=True, target=target)
    half, spelt_out = request("\ud800", [1, 2], 60), request(r"\ud800", [2, 3], 60)
    between = request("between", [3, 4], 60.5)
    half.lora_id = "\ud800"
    batch = [half, spelt_out, between]
    engine.admit(*batch)
    engine.run()
    for user in batch:
        assert list(user.output_ids_through_stop) == [*decoded(user.origin_input_ids, 48), STOP]
    until(lambda: figures(endpoint)["draftd_sessions"] == 0)
    assert figures(endpoint)["draftd_spec_decode_num_accepted_tokens_total"] == engine.accepted > 0


def test_output_ids_may_be_complete_already(arguments: ServerArgs, endpoint: ServerProcess) -> None:
    """Where a grammar or a prefill has the last results processed, the engine hands them over all the same."""
    engine = SglangEngine(arguments, overlap=True)
    prompt, first, last = [1, 2, 3, 1, 2], [3], [1, 2]
    relay = NgramVerifyInput(
        draft_token_num=WIDTH,
        new_seq_lens=torch.tensor([7]),
        accept_tokens=torch.tensor([*last, *[0] * (WIDTH - 2)]),
        accept_lens=torch.tensor([2]),
    )
    for processed in ([*first], [*first, *last]):
        ahead = request("ahead", prompt, 20)
        ahead.output_ids.extend(processed)
        batch = engine.batch([ahead], relay)
        batch.seq_lens_cpu = torch.tensor([7])
        assert [*map(list, engine.worker._accepted(batch))] == [[] if processed[1:] else last]
        tokens, mask = engine.worker._prepare_draft_tokens(batch)
        assert (tokens.shape, mask.shape) == ((WIDTH,), (WIDTH * WIDTH,))
        assert (tokens[0], mask.reshape(WIDTH, WIDTH).diagonal().all()) == (2, True)


def test_what_a_request_states(arguments: ServerArgs, endpoint: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_SHARE", "none")
    worker = SglangEngine(arguments, overlap=True).worker
    plain = request("plain", [1], 20, stop_token_ids=[5])
    assert worker._options(plain) == {
        "adapter": "",
        "group": "",
        "share": "none",
        "corpora": "all",
        "min_survival": 0.0,
        "shape": "tree",
        "stop_ids": [5, STOP],
        "max_new_tokens": 20,
        "temperature": 0.0,
    }
    adapted = request("adapted", [1], 20, ignore_eos=True, stop_token_ids=[5])
    adapted.lora_id = "id-1"
    stated = worker._options(adapted)
    assert (stated["adapter"], stated["stop_ids"]) == ("poet", [])
    adapted.lora_id = "unloaded by now"
    assert worker._options(adapted)["adapter"] == "unloaded by now"
