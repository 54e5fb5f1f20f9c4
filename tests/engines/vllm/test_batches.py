"""What the proposer reads off a batch of the model runner, and says to a drafter in this process."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from vllm import SamplingParams
from vllm.lora.request import LoRARequest
from vllm.v1.worker.gpu_input_batch import CachedRequestState

from draftd.adapters.settings import adapter_settings
from draftd.adapters.vllm import Asking, DraftdProposer
from draftd.client.local import LocalClient
from draftd.engine import Engine
from draftd.wire import ALL_VERIFIED, DraftSync, Frame, Share

PROMPT = [1, 2, 3, 4, 5, 1, 2, 3]  # goes on with 4, 5, 1
LONGEST = 16
END = 9  # the model's end id


class Batch:
    """What the proposer reads of a model runner, and a proposer without a tensor-parallel group."""

    def __init__(self, engine: Engine, **settings: Any) -> None:
        self.frames: list[Frame] = []
        self.max_model_len = LONGEST
        self.requests: dict[str, CachedRequestState] = {}
        self.input_batch = SimpleNamespace(req_ids=[], spec_token_ids=[])
        self.query_start_loc = SimpleNamespace(np=np.zeros(9, np.int32))
        client = LocalClient(engine, vocabulary_size=100)
        self.asking = Asking(self, client, adapter_settings(**settings), most_tokens=3)

    def add(self, name: str, prompt: list[int] | None = PROMPT, lora: str = "", **sampling: Any) -> None:
        parameters = SamplingParams(**sampling)
        parameters.update_from_generation_config({}, END)
        self.requests[name] = CachedRequestState(
            req_id=name,
            prompt_token_ids=prompt,
            prompt_embeds=None if prompt else np.zeros((2, 8)),
            mm_features=[],
            sampling_params=parameters,
            generator=None,
            block_ids=(),
            num_computed_tokens=0,
            output_token_ids=[],
            lora_request=LoRARequest(lora, 1, "/adapters/x") if lora else None,
        )

    def step(
        self,
        sampled: dict[str, list[int]],
        scheduled: dict[str, list[int]] | None = None,
        prefilled: dict[str, int] | None = None,
    ) -> list[list[int]]:
        """The batch holds the requests of `sampled`, which emitted these tokens, by help of the drafts `scheduled`;
        `prefilled`: tokens of prompts that were in it."""
        texts = np.full((len(sampled), LONGEST), 77, np.int32)  # rows hold what stood there before
        lengths = np.zeros(len(sampled), np.int32)
        for row, (name, tokens) in enumerate(sampled.items()):
            state = self.requests[name]
            state.output_token_ids += tokens
            lengths[row] = state.num_tokens
            for place in range(0 if state.prompt_token_ids else state.num_prompt_tokens, state.num_tokens):
                texts[row, place] = state.get_token_id(place)
        self.input_batch.req_ids = list(sampled)
        self.input_batch.spec_token_ids = [(scheduled or {}).get(name, []) for name in sampled]
        counts = [(prefilled or {}).get(name, 1 + len((scheduled or {}).get(name, []))) for name in sampled]
        self.query_start_loc.np[1 : 1 + len(counts)] = np.cumsum(counts)
        return self.asking.drafts(list(sampled.values()), lengths, texts)


@pytest.fixture
def batch(engine: Engine) -> Batch:
    return Batch(engine)


def only_sync(frames: list[Frame]) -> DraftSync:
    (sync,) = [sync for frame in frames for sync in frame.step.sync]
    return sync


def test_what_of_a_prompt_was_in_a_step_is_told_as_the_guess_for_the_next(batch: Batch, frames: list[Frame]) -> None:
    for name in ("early", "ready", "late"):
        batch.add(name)
    batch.step({"early": [], "ready": [4], "late": []}, prefilled={"early": 500, "ready": 8, "late": 12})
    assert frames[-1].step.other_tokens == 512
    batch.step({"early": [4], "ready": [5]}, prefilled={"early": 500})
    assert frames[-1].step.other_tokens == 0


def test_rows_whose_prompt_is_not_through_get_no_draft_and_are_not_told_of(batch: Batch, frames: list[Frame]) -> None:
    batch.add("early")
    batch.add("ready")
    assert batch.step({"early": [], "ready": [4]}) == [[], [5, 1, 2]]
    assert only_sync(frames).request_id == "ready"
    assert batch.step({"early": []}) == [[]]
    assert batch.step({"early": [4], "ready": [5, 1]}) == [[5, 1, 2], [2, 3, 4]]


def test_steps_of_decode_alone_are_timed(batch: Batch, frames: list[Frame]) -> None:
    batch.add("early")
    batch.add("ready")
    batch.step({"ready": [4]})
    batch.step({"ready": [5, 1]}, {"ready": [5, 1]})
    batch.step({"ready": [2], "early": []})  # a part of a prompt was in it
    batch.step({"ready": [3], "early": [4]})  # and the rest of it
    batch.step({"ready": [4], "early": [5]})
    assert [frame.step.step_width for frame in frames if frame.HasField("step")] == [0, 3, 0, 0, 2]


def test_drafts_leave_room_for_the_longest_text(batch: Batch) -> None:
    batch.add("long", [*PROMPT, 4, 5, 1, 2, 3])
    assert batch.step({"long": [4]}) == [[5]]
    assert batch.step({"long": [5]}, {"long": [5]}) == [[]]


def test_a_request_states_what_its_sampling_says(batch: Batch, frames: list[Frame]) -> None:
    batch.add("r", lora="french", max_tokens=5, temperature=0.5, stop_token_ids=[7], extra_args={"draftd_group": "eve"})
    batch.step({"r": [4]})
    sync = only_sync(frames)
    assert (sync.adapter, sync.group, sync.max_new_tokens, sync.temperature) == ("french", "eve", 5, 0.5)
    assert sorted(np.frombuffer(sync.stop_ids, "<i4").tolist()) == [7, END]
    assert batch.asking.requests.figures_of.keys() == {"french"}


def test_a_request_may_go_on_after_the_end_id_and_up_to_the_longest_text(batch: Batch, frames: list[Frame]) -> None:
    batch.add("r", ignore_eos=True, max_tokens=None)
    batch.step({"r": [4]})
    sync = only_sync(frames)
    assert (sync.stop_ids, sync.max_new_tokens) == (b"", LONGEST - len(PROMPT))


def test_without_a_group_a_request_shares_nothing_where_groups_share(engine: Engine, frames: list[Frame]) -> None:
    batch = Batch(engine, share="group")
    batch.add("r")
    batch.step({"r": [4]})
    assert only_sync(frames).share == Share.NOTHING


def test_names_that_can_not_be_sent_are_spelt_out(batch: Batch, frames: list[Frame]) -> None:
    batch.add("r", lora="\ud800", extra_args={"draftd_group": "half a pair: \ud800"})
    assert batch.step({"r": [4]}) == [[5, 1, 2]]
    sync = only_sync(frames)
    assert (sync.adapter, sync.group) == ("\\ud800", "half a pair: \\ud800")


def test_of_a_prompt_given_as_embeddings_only_the_output_is_told(batch: Batch, frames: list[Frame]) -> None:
    batch.add("r", prompt=None)
    assert batch.step({"r": [4, 5, 4]}) == [[5, 4, 5]]
    sync = only_sync(frames)
    assert (len(sync.prompt), sync.output) == (0, b"")
    assert np.frombuffer(frames[-1].step.commit.tokens, "<i4").tolist() == [4, 5, 4]


@pytest.mark.parametrize(
    ("scheduled", "verified"),
    [([5, 1, 2], 3), ([5, 1], 2), ([], 0), ([0, 0, 0], 0)],
    ids=["all", "cut", "none", "made up"],
)
def test_what_the_scheduler_made_of_a_draft_is_told(
    batch: Batch, frames: list[Frame], scheduled: list[int], verified: int
) -> None:
    batch.add("r")
    assert batch.step({"r": [4]}) == [[5, 1, 2]]
    batch.step({"r": [5]}, {"r": scheduled})
    assert np.frombuffer(frames[-1].step.commit.verified, "<i4").tolist() == [
        ALL_VERIFIED if verified == 3 else verified
    ]
    assert batch.asking.requests.figures.verified == verified


def test_what_left_the_batch_is_closed_once_the_engine_forgot_it(batch: Batch, frames: list[Frame]) -> None:
    batch.add("preempted")
    batch.add("finished")
    batch.add("other")
    batch.step({"preempted": [4], "finished": [4], "other": [4]})
    del batch.requests["finished"]
    frames.clear()
    batch.step({"other": [5]})
    assert len(frames[-1].step.close.request) == 4
    assert batch.step({"other": [1], "preempted": [5]}, {}) == [[2, 3, 4], [1, 2, 3]]
    assert not [sync for frame in frames for sync in frame.step.sync], "a preempted request is not opened again"


def test_load_model_wants_the_model_runner_as_its_caller() -> None:
    proposer = DraftdProposer(SimpleNamespace(speculative_config=SimpleNamespace(num_speculative_tokens=3)))
    assert repr(proposer).endswith("does not ask)")
    with pytest.raises(RuntimeError, match="is no model runner of the kind"):
        proposer.load_model()
