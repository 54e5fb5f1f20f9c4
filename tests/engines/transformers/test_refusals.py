"""What DraftdDecoding can't do, and what can't be meant, is named."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, PreTrainedModel, SynthIDTextWatermarkingConfig

from draftd.adapters.transformers import DraftdDecoding
from draftd.config import ConfigError
from tests.engines.transformers.conftest import DOUBLING, SHAPE, padded, random_model

OF_THE_WHOLE_BATCH: list[tuple[dict[str, Any], str]] = [
    ({"prefix_allowed_tokens_fn": lambda _row, _ids: [3, 4]}, "prefix_allowed_tokens_fn"),
    ({"encoder_no_repeat_ngram_size": 2}, "encoder_no_repeat_ngram_size"),
    ({"encoder_repetition_penalty": 1.5}, "encoder_repetition_penalty"),
    ({"watermarking_config": SynthIDTextWatermarkingConfig(2, list(range(1, 30)))}, "SynthID's watermarking_config"),
]


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"num_beams": 2}, "generation mode beam_search"),
        ({"prompt_lookup_num_tokens": 3}, "generation mode assisted_generation"),
        ({"use_cache": False}, "use_cache=False"),
        ({"return_dict_in_generate": True, "output_scores": True}, "output_scores"),
        ({"guidance_scale": 1.5}, "guidance_scale"),
        ({"inputs_embeds": torch.zeros(2, 3, 16)}, "inputs_embeds"),
        ({"position_ids": torch.arange(5)[None]}, "position_ids of another shape than input_ids"),
    ],
)
def test_what_is_not_supported_is_named(
    small: PreTrainedModel, decoding: DraftdDecoding, asked: dict[str, Any], refused: str
) -> None:
    with pytest.raises(ValueError, match=f"DraftdDecoding can't do {refused}; call generate without custom_generate"):
        small.generate(**padded([[1, 2, 3], [4, 5]]), max_new_tokens=4, custom_generate=decoding, **asked)


@pytest.mark.parametrize(("asked", "name"), OF_THE_WHOLE_BATCH)
def test_processors_of_a_whole_batch_go_with_one_row_alone(
    small: PreTrainedModel, decoding: DraftdDecoding, asked: dict[str, Any], name: str
) -> None:
    greedy: dict[str, Any] = {**padded([DOUBLING]), "max_new_tokens": 24, "do_sample": False}
    expected = small.generate(**greedy, **asked)
    assert not torch.equal(expected, small.generate(**greedy))
    assert torch.equal(small.generate(**greedy, **asked, custom_generate=decoding), expected)
    with pytest.raises(ValueError, match=f"DraftdDecoding can't do {name} for more than one row"):
        small.generate(**padded([DOUBLING, DOUBLING[3:]]), **asked, max_new_tokens=24, custom_generate=decoding)


def test_arguments_that_cannot_be_meant_are_named(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    with pytest.raises(ValueError, match="adapters names the weights of 1 rows; the batch has 2"):
        small.generate(**padded([[1], [2]]), max_new_tokens=4, custom_generate=decoding, adapters=["a"])
    with pytest.raises(ValueError, match="StaticCache can't take rejected tokens back"):
        small.generate(**padded([[1]]), max_new_tokens=4, custom_generate=decoding, cache_implementation="static")
    with pytest.raises(ValueError, match="input_ids has no rows; give at least one"):
        small.generate(torch.zeros(0, 3, dtype=torch.int64), max_new_tokens=4, custom_generate=decoding)
    assert repr(decoding).startswith("DraftdDecoding('small' at ipc://")


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"group": 3}, "group is 3; name it by a string"),
        ({"group": None}, "group is None; name it by a string"),
        ({"adapters": [None, "a"]}, r"adapters is \[None, 'a'\]; give a list with a name for each row, '__base__' for"),
        ({"adapters": "ab"}, "adapters is 'ab'; give a list"),
    ],
)
def test_names_of_another_type_are_refused(
    small: PreTrainedModel, decoding: DraftdDecoding, asked: dict[str, Any], refused: str
) -> None:
    with pytest.raises(TypeError, match=refused):
        small.generate(**padded([[1], [2]]), max_new_tokens=4, custom_generate=decoding, **asked)


@pytest.mark.parametrize(
    ("max_nodes", "refused"),
    [
        (0, "max_nodes is 0; draft at least 1 token"),
        ("8", "max_nodes is '8'; give a whole number"),
        (None, "max_nodes is None; give a whole number"),
        (65536, "65536 nodes of one request were asked for"),
    ],
)
def test_a_number_of_nodes_that_nobody_can_draft_is_refused(
    small: PreTrainedModel, max_nodes: Any, refused: str
) -> None:
    with pytest.raises(ValueError, match=refused):
        DraftdDecoding(small, max_nodes=max_nodes, model="small")


def test_a_model_without_a_name_needs_one(small: PreTrainedModel) -> None:
    with pytest.raises(ConfigError, match="no name of its own; give one with model= or DRAFTD_ADAPTER_MODEL"):
        DraftdDecoding(small)


def test_a_model_with_another_vocabulary_is_refused(decoding: DraftdDecoding) -> None:
    larger = random_model(LlamaConfig(vocab_size=9, **SHAPE))
    with pytest.raises(ValueError, match="the model has 9 tokens, that of this DraftdDecoding 6; make one for each"):
        larger.generate(**padded([[1]]), max_new_tokens=4, custom_generate=decoding)
    assert decoding.requests.figures.steps == 0
