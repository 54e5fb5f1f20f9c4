"""Every option of open reaches the drafter, and what can't be meant is refused before anything is sent."""

from typing import Any

import numpy as np
import pytest

from draftd.client import Namespace
from draftd.client.opening import opening_message
from draftd.wire import Preset, Shape, Share

NAMESPACE = Namespace(tenant="acme", model="llama", tokenizer="3f2a", adapter="sql")


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({}, "tenant", "acme"),
        ({"tenant": "globex"}, "tenant", "globex"),
        ({}, "adapter", "sql"),
        ({"adapter": "chat"}, "adapter", "chat"),
        ({"group": "g1"}, "group", "g1"),
        ({"stop_ids": [2, 7]}, "stop_ids", np.array([2, 7], "<i4").tobytes()),
        ({"max_new_tokens": 0}, "max_new_tokens", 0),
        ({"shape": "tree"}, "shape", Shape.SHAPE_TREE),
        ({"shape": "chain"}, "shape", Shape.SHAPE_CHAIN),
        ({"max_nodes": 9}, "max_nodes", 9),
        ({"share": "outputs"}, "share", Share.OUTPUTS),
        ({"share": "group", "group": "g1"}, "share", Share.GROUP),
        ({"share": "all"}, "share", Share.ALL),
        ({"share": "none"}, "share", Share.NOTHING),
        ({}, "hide_history", False),
        ({"history": False}, "hide_history", True),
        ({"corpora": "all"}, "named_corpora", False),
        ({"corpora": []}, "named_corpora", True),
        ({"corpora": ["docs"]}, "corpora", ["docs"]),
        ({"temperature": 0.0}, "temperature", 0.0),
        ({"preset": "learned"}, "preset", Preset.LEARNED),
        ({"preset": "suffix_decoding"}, "preset", Preset.SUFFIX_DECODING),
        ({"preset": "ngram_bfs"}, "preset", Preset.NGRAM_BFS),
        ({"preset": "ngram_prob"}, "preset", Preset.NGRAM_PROB),
        ({"max_depth": 3}, "max_depth", 3),
        ({"max_breadth": 1}, "max_breadth", 1),
        ({"min_survival": 0.1}, "min_survival", 0.1),
        ({"max_spec_factor": 1.1}, "max_spec_factor", 1.1),
        ({"min_token_prob": 0.0, "preset": "suffix_decoding"}, "min_token_prob", 0.0),
    ],
)
def test_an_option_reaches_the_drafter(options: Any, field: str, value: object) -> None:
    assert getattr(opening_message("r", [1], NAMESPACE, 100, options), field) == value


POLICY = ("preset", "max_depth", "max_breadth", "min_survival", "max_spec_factor", "min_token_prob")


@pytest.mark.parametrize("options", [{}, dict.fromkeys(("max_new_tokens", "temperature", *POLICY))])
def test_what_is_left_out_is_absent_not_zero(options: Any) -> None:
    message = opening_message("r", [1], NAMESPACE, 100, options)
    for field in ("max_new_tokens", "temperature", *POLICY):
        assert not message.HasField(field), field


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": "bush"}, "shape is 'bush'; choose one of tree, chain"),
        ({"share": "some"}, "share is 'some'; choose one of"),
        ({"share": "group"}, "without a group"),
        ({"max_nodes": 0}, "max_nodes is 0"),
        ({"max_new_tokens": -1}, "max_new_tokens is -1"),
        ({"corpora": "docs"}, "corpora is 'docs'"),
        ({"preset": "bfs"}, "preset is 'bfs'; choose one of learned, suffix_decoding, ngram_bfs, ngram_prob"),
        ({"max_depth": 0}, "max_depth is 0"),
        ({"max_breadth": 0}, "max_breadth is 0; give a number from 1 to"),
        ({"min_survival": 1.5}, "min_survival is 1.5; give a number from 0.0 to 1.0"),
        ({"max_spec_factor": -1.0}, "max_spec_factor is -1.0"),
        ({"max_spec_factor": float("nan")}, "max_spec_factor is nan"),
        ({"min_token_prob": -0.1}, "min_token_prob is -0.1"),
        ({"min_token_prob": 0.1, "preset": "ngram_bfs"}, "min_token_prob is for preset='suffix_decoding' alone"),
    ],
)
def test_what_cannot_be_meant_is_an_error_that_names_request_and_option(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        opening_message("req-7", [1], NAMESPACE, 100, options)
    assert "req-7" in str(raised.value)


@pytest.mark.parametrize("request_id", [5, None, b"r"])
def test_an_id_that_is_no_string_is_an_error(request_id: Any) -> None:
    with pytest.raises(TypeError, match="id should be a string"):
        opening_message(request_id, [1], NAMESPACE, 100, {})


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="unknown option prompts"):
        opening_message("r", [1], NAMESPACE, 100, {"prompts": 3})  # type: ignore[typeddict-unknown-key]
