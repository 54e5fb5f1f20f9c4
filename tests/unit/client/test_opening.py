"""Every option of open reaches the drafter, and what can't be meant is refused before anything is sent."""

from typing import Any

import numpy as np
import pytest

from draftd.client import Namespace
from draftd.client.opening import opening_message
from draftd.wire import Shape, Share

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
    ],
)
def test_an_option_reaches_the_drafter(options: Any, field: str, value: object) -> None:
    assert getattr(opening_message("r", [1], NAMESPACE, 100, options), field) == value


def test_what_is_left_out_is_absent_not_zero() -> None:
    message = opening_message("r", [1], NAMESPACE, 100, {})
    assert not message.HasField("max_new_tokens")
    assert not message.HasField("temperature")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": "bush"}, "shape is 'bush'; choose one of tree, chain"),
        ({"share": "some"}, "share is 'some'; choose one of"),
        ({"share": "group"}, "without a group"),
        ({"max_nodes": 0}, "max_nodes is 0"),
        ({"max_new_tokens": -1}, "max_new_tokens is -1"),
        ({"corpora": "docs"}, "corpora is 'docs'"),
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
