"""Every option of open reaches the drafter, and what can't be meant is refused before anything is sent."""

from typing import Any

import numpy as np
import pytest

from draftd.client import Namespace
from draftd.client.opening import OpenOptions, opening_message
from draftd.client.option_checks import KINDS
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
    assert getattr(opening_message("r", NAMESPACE, 100, options), field) == value


POLICY = ("preset", "max_depth", "max_breadth", "min_survival", "max_spec_factor", "min_token_prob")


@pytest.mark.parametrize("options", [{}, dict.fromkeys(("max_new_tokens", "temperature", *POLICY))])
def test_what_is_left_out_is_absent_not_zero(options: Any) -> None:
    message = opening_message("r", NAMESPACE, 100, options)
    for field in ("max_new_tokens", "temperature", *POLICY):
        assert not message.HasField(field), field


REFUSED = {
    "tenant": [5, None, b"acme", "\udc80"],
    "adapter": [5, None],
    "group": [5, None],
    "stop_ids": [5, None, "2", [-1], [2**31 - 1], ["2"], [1.5], {2: 3}, [True]],
    "max_new_tokens": [-1, 2**32, 1.5, "3", True],
    "shape": ["bush", None, ["tree"]],
    "max_nodes": [0, -1, 2**40, 1.5, "3", float("nan")],
    "share": ["some", None, ["all"]],
    "history": ["no", None, 0],
    "corpora": ["docs", None, 3, [3], {"docs": 1}, b"all"],
    "temperature": ["hot", True],
    "preset": ["bfs", ["learned"], 1],
    "max_depth": [0, 2**32, 1.5, "3"],
    "max_breadth": [0, 2**32, 1.5, "3"],
    "min_survival": [1.5, -0.1, float("nan"), "0.5"],
    "max_spec_factor": [-1.0, float("nan"), 1e10, "2"],
    "min_token_prob": [-0.1, 1.1, "0"],
}


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, values in REFUSED.items() for value in values]
)
def test_what_cannot_be_meant_is_an_error_that_names_request_and_option(option: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{option} is .*; give ") as raised:
        opening_message("req-7", NAMESPACE, 100, {option: value})
    assert "req-7" in str(raised.value)


def test_every_option_has_a_check_and_a_case_here() -> None:
    assert set(OpenOptions.__annotations__) == set(KINDS) == set(REFUSED)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": "bush"}, "shape is 'bush'; give one of tree, chain"),
        ({"preset": "bfs"}, "give one of learned, suffix_decoding, ngram_bfs, ngram_prob, or None"),
        ({"max_breadth": 0}, "max_breadth is 0; give a whole number from 1 to 4294967295, or None"),
        ({"min_survival": 1.5}, "min_survival is 1.5; give a number from 0 to 1, or None"),
        ({"stop_ids": np.zeros((9, 9))}, r"stop_ids is array\(.*\); give a list of token ids"),
        ({"share": "group"}, "share='group' without a group; name it with group="),
        ({"min_token_prob": 0.1, "preset": "ngram_bfs"}, "min_token_prob is for preset='suffix_decoding' alone"),
    ],
)
def test_the_error_says_in_one_line_what_to_give(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^open\\('r'\\): .*{words}") as raised:
        opening_message("r", NAMESPACE, 100, options)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 200


def test_options_may_come_from_numpy() -> None:
    options: Any = {
        "stop_ids": np.array([2, 7]),
        "max_nodes": np.int64(9),
        "max_new_tokens": np.uint16(5),
        "history": np.bool_(False),
        "temperature": np.float32(0.5),
        "min_survival": np.float64(0.25),
        "max_depth": np.int32(3),
    }
    message = opening_message("r", NAMESPACE, 100, options)
    assert (message.max_nodes, message.max_new_tokens, message.hide_history, message.max_depth) == (9, 5, True, 3)
    assert (message.temperature, message.min_survival) == (0.5, 0.25)
    assert message.stop_ids == np.array([2, 7], "<i4").tobytes()


@pytest.mark.parametrize("request_id", [5, None, b"r", "\ud800"])
def test_an_id_that_is_no_string_is_an_error(request_id: Any) -> None:
    with pytest.raises(TypeError, match="id should be a string"):
        opening_message(request_id, NAMESPACE, 100, {})


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="unknown option prompts"):
        opening_message("r", NAMESPACE, 100, {"prompts": 3})  # type: ignore[typeddict-unknown-key]
