"""What a DraftSync says of a request's trees: checked, and the server's defaults where it says nothing."""

import pytest

from draftd.client.local import LocalClient
from draftd.config import DraftingSettings, EngineSettings
from draftd.engine import Engine
from draftd.engine.policy import policy_of
from draftd.wire import DraftSync, Frame, Preset, Status, StepBatch
from tests.contract.frames import hello_frame


@pytest.mark.parametrize(
    ("sync", "words"),
    [
        (DraftSync(preset=9), "preset: 9 is no Preset"),
        (DraftSync(max_depth=0), "max_depth: 0 is not at least 1"),
        (DraftSync(max_breadth=0), "max_breadth: 0 is not at least 1"),
        (DraftSync(min_survival=1.5), r"min_survival: 1.5 is not in \[0, 1\]"),
        (DraftSync(min_survival=float("nan")), "min_survival: nan is not in"),
        (DraftSync(preset=Preset.SUFFIX_DECODING, max_spec_factor=-1), "max_spec_factor: -1.0 is not in"),
        (
            DraftSync(preset=Preset.SUFFIX_DECODING, max_spec_factor=float("inf")),
            "max_spec_factor: inf is not in",
        ),
        (DraftSync(preset=Preset.SUFFIX_DECODING, min_token_prob=2), "min_token_prob: 2.0 is not in"),
        (DraftSync(preset=Preset.SUFFIX_DECODING, max_spec_factor=1e300), "max_spec_factor: 1e.300 is not in"),
        (
            DraftSync(min_token_prob=0.1),
            "min_token_prob: is for SUFFIX_DECODING; the preset is LEARNED, the server's default: state one",
        ),
        (
            DraftSync(preset=Preset.NGRAM_BFS, max_spec_factor=2),
            "max_spec_factor: .* the preset is NGRAM_BFS",
        ),
    ],
)
def test_what_cannot_be_meant_is_an_error_that_names_the_field(sync: DraftSync, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        policy_of(sync, DraftingSettings())


def test_a_request_whose_policy_cannot_be_meant_is_refused() -> None:
    engine = Engine(EngineSettings())
    engine.handle(hello_frame(7))
    sync = DraftSync(request=1, epoch=1, request_id="r", tenant="default", model="default", max_breadth=0)
    answer = engine.handle(Frame(step=StepBatch(verifier=7, step=1, sync=[sync])).SerializeToString())
    (error,) = Frame.FromString(answer.reply).reply.errors
    assert (error.status, error.message) == (Status.INVALID_ARGUMENT, "max_breadth: 0 is not at least 1")


TEXT = [1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "drafted"),
    [
        (DraftingSettings(preset="ngram_prob", max_breadth=1, max_depth=2), [7, 1]),
        (DraftingSettings(preset="ngram_bfs", max_breadth=1, max_depth=2), [8, 1]),
        (DraftingSettings(preset="ngram_bfs", max_breadth=1, max_depth=1), [8]),
        (DraftingSettings(preset="ngram_bfs", max_depth=1), [7, 8]),
        (DraftingSettings(preset="ngram_bfs", max_depth=1, min_survival=0.5), [7]),
    ],
)
def test_a_request_that_states_nothing_is_drafted_for_as_the_server_is_configured(
    settings: DraftingSettings, drafted: list[int]
) -> None:
    with LocalClient(Engine(EngineSettings(), settings)) as client:
        assert client.open("r", TEXT, wait=True).draft().tokens.tolist() == drafted


def test_what_a_request_states_goes_before_the_default() -> None:
    settings = DraftingSettings(preset="ngram_bfs", max_breadth=1, max_depth=1, min_survival=1.0)
    with LocalClient(Engine(EngineSettings(), settings)) as client:
        request = client.open("r", TEXT, wait=True, preset="ngram_prob", max_breadth=2, max_depth=2, min_survival=0.0)
        assert request.draft().tokens.tolist() == [7, 1, 8, 1]
