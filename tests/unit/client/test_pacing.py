"""What a client may say of pacing and of the cost of its steps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from draftd.client import Client, CostTable
from draftd.client.local import LocalClient
from draftd.client.pacing import load_of
from draftd.engine import Engine
from draftd.wire import Frame, Pacing
from tests.local_drafter import engine, frames

__all__ = ["engine", "frames"]

TABLE = CostTable((1, 64), (100.0, 120.0))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pacing": "fast"}, ValueError, "pacing is 'fast'; give one of as_asked, survival, schedule, or None"),
        ({"cost": {1: 2.0}}, TypeError, "cost is {1: 2.0}; give a draftd.client.CostTable"),
        ({"graph_sizes": [8, 4]}, ValueError, r"graph_sizes is \[8, 4\]; give numbers from 1"),
        ({"graph_sizes": range(1, 5000)}, ValueError, "graph_sizes has 4999 numbers; give at most 4096"),
        ({"graph_sizes": 5}, ValueError, "graph_sizes is 5; give a row of numbers"),
        ({"graph_sizes": [2**70]}, ValueError, "graph_sizes is .*; give numbers up to"),
        ({"pacing": []}, ValueError, r"pacing is \[\]; give one of"),
        ({"graph_sizes": [1.5]}, ValueError, "graph_sizes is 1.5; give a whole number"),
        ({"speed": 3}, TypeError, "unknown option speed"),
    ],
)
def test_a_client_says_what_is_wrong_with_an_option(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Client("ipc:///nowhere", **options)


@pytest.mark.parametrize(
    ("load", "error", "message"),
    [
        ({"step_seconds": -1.0, "step_width": 1}, ValueError, "step_seconds is -1.0"),
        ({"step_seconds": float("nan"), "step_width": 1}, ValueError, "step_seconds is nan"),
        ({"step_seconds": "1", "step_width": "1"}, ValueError, "step_width is '1'; give a whole number"),
        ({"step_seconds": "long", "step_width": 1}, ValueError, "step_seconds is 'long'; give a number"),
        ({"step_seconds": 10**400, "step_width": 1}, ValueError, "step_seconds is 1.*; give a number"),
        ({"step_seconds": 4294.9672957, "step_width": 3}, ValueError, "at most 3600"),
        ({"step_seconds": 0.01, "step_width": 0}, ValueError, "step_width is 0; give a number of tokens, at least 1"),
        ({"widths": None}, ValueError, "widths is None; give a row of numbers"),
        ({"step_seconds": 1e6, "step_width": 1}, ValueError, "step_seconds is 1000000.0"),
        ({"step_seconds": 0.01}, ValueError, "step_seconds and step_width belong together"),
        ({"step_width": 1}, ValueError, "step_seconds and step_width belong together"),
        ({"step_seconds": 0.01, "step_width": -1}, ValueError, "step_width is -1; give a number of tokens"),
        ({"other_tokens": 2**32}, ValueError, "other_tokens is 4294967296; give a number of tokens"),
        ({"other_tokens": "many"}, ValueError, "other_tokens is 'many'; give a whole number"),
        ({"widths": [0, 1]}, ValueError, r"widths is \[0, 1\]; give numbers from 1 to 65535"),
        ({"widths": [1, 65536]}, ValueError, r"widths is \[1, 65536\]; give numbers from 1 to 65535"),
        ({"widths": [2, 2]}, ValueError, "each above the one before"),
        ({"cost": 4.0}, TypeError, "cost is 4.0; give a draftd.client.CostTable"),
        ({"step_micros": 4}, TypeError, "unknown option step_micros"),
    ],
)
def test_a_step_says_what_is_wrong_and_commits_nothing(
    load: Any, error: type[Exception], message: str, engine: Engine
) -> None:
    with LocalClient(engine) as client:
        request = client.open("r", [1, 2, 3], wait=True)
        with pytest.raises(error, match=message):
            client.step({request: [4]}, **load)
        assert request.length == 3


def sent(load: Mapping[str, Any], engine: Engine, frames: list[Frame]) -> Frame:
    with LocalClient(engine, pacing="survival", cost=TABLE, graph_sizes=np.array([1, 8])) as client:
        request = client.open("r", [1, 2, 3])
        client.step({request: [4]}, **load)
    return frames[-1]


def test_the_greeting_says_it(engine: Engine, frames: list[Frame]) -> None:
    sent({}, engine, frames)
    hello = frames[0].hello
    assert hello.pacing == Pacing.SURVIVAL
    assert CostTable.of_message(hello.cost) == TABLE
    assert np.frombuffer(hello.graph_sizes, "<u4").tolist() == [1, 8]


def test_the_step_says_it(engine: Engine, frames: list[Frame]) -> None:
    load = {"step_seconds": np.float32(0.004), "step_width": np.int64(33), "other_tokens": 7, "widths": [1, 3]}
    step = sent({**load, "cost": TABLE}, engine, frames).step
    assert (step.step_micros, step.step_width, step.other_tokens, step.widths) == (4000, 33, 7, b"\1\0\3\0")
    assert CostTable.of_message(step.cost) == TABLE


def test_who_says_nothing_sends_nothing(engine: Engine, frames: list[Frame]) -> None:
    assert load_of({}) is None
    step = sent({}, engine, frames).step
    fields = {field.name for field, _ in step.ListFields()}
    assert not fields & {"step_micros", "step_width", "other_tokens", "widths", "cost"}


def test_of_a_step_in_parts_the_first_tells_of_the_last_step_and_each_of_the_others() -> None:
    load = load_of({"step_seconds": 0.004, "step_width": 33, "other_tokens": 7, "widths": [2], "cost": TABLE})
    assert load is not None
    first, second = load.beside(5, is_first=True), load.beside(9, is_first=False)
    assert (first.step_micros, first.step_width, first.other_tokens, first.cost) == (4000, 33, 12, TABLE)
    assert (second.step_micros, second.step_width, second.other_tokens, second.cost) == (0, 0, 16, None)
    assert first.widths == second.widths == b"\2\0"
