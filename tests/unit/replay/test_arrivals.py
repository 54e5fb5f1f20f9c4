"""Samples of one prompt run side by side; turns of one session never do."""

import numpy as np

from draftd.replay.arrivals import Arrivals
from draftd.replay.traces import RecordedRequest


def recorded(name: str, group: str, prompt: list[int], output: list[int]) -> RecordedRequest:
    return RecordedRequest(name, np.array(prompt, np.int32), np.array(output, np.int32), group)


TURNS = [recorded("s0", "s", [1], [2]), recorded("s1", "s", [1, 2, 3], [4]), recorded("s2", "s", [1, 2, 3, 4, 5], [6])]
SAMPLES = [recorded(f"p{number}", "p", [1], [number]) for number in range(3)]


def started(arrivals: Arrivals, most: int) -> list[str]:
    names = []
    while len(names) < most and (request := arrivals.start_next()) is not None:
        names.append(request.id)
    return names


def test_samples_of_one_prompt_start_together() -> None:
    assert started(Arrivals(SAMPLES), 16) == ["p0", "p1", "p2"]


def test_a_turn_waits_for_the_one_before_and_others_pass_it() -> None:
    arrivals = Arrivals([*TURNS, *SAMPLES])
    assert started(arrivals, 3) == ["s0", "p0", "p1"]
    arrivals.ended(TURNS[0])
    assert started(arrivals, 16) == ["s1", "p2"]
    assert started(arrivals, 16) == []
    arrivals.ended(TURNS[1])
    assert started(arrivals, 16) == ["s2"]


def test_a_session_starts_anew_only_after_its_last_turn() -> None:
    again = recorded("again", "s", [1], [2])
    arrivals = Arrivals([*TURNS[:2], again])
    assert started(arrivals, 16) == ["s0"]
    arrivals.ended(TURNS[0])
    assert started(arrivals, 16) == ["s1"]
    arrivals.ended(TURNS[1])
    assert started(arrivals, 16) == ["again"]


def test_requests_are_read_no_earlier_than_they_start() -> None:
    unread = iter(SAMPLES)
    started(Arrivals(unread), 1)
    assert len(list(unread)) == 2
