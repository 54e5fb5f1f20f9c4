"""From sightings of texts on a device to windows in their tapes, with an engine of draftd in this process."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from draftd.adapters.fed_requests import FedRequests
from draftd.adapters.sightings import END_TOKENS, SeenRow, TextReader
from draftd.client.local import LocalClient
from draftd.engine import Engine
from draftd.kernels.delivery import STAGES
from draftd.kernels.texts import DeviceTexts, Rule
from draftd.sources.device_matcher import DeviceMatcher
from draftd.wire import Namespace
from tests.engines.kernels.oracle import CPU
from tests.local_drafter import engine
from tests.segments import sealed

__all__ = ["engine"]

HERE = Namespace(tenant="here", model="m")
DOCUMENT, OTHER = list(range(1000, 1200)), list(range(2000, 2200))
ROWS, WIDTH, MOST = 2, 400, 4


class Device:
    """An engine's matrix with its matcher, a client of draftd, and what is between them."""

    def __init__(self, drafter: Engine) -> None:
        self.texts = DeviceTexts.empty(ROWS, WIDTH, CPU)
        self.matcher = DeviceMatcher(self.texts, Rule(2, 64, MOST))
        self.reader = TextReader(self.texts.tokens, self.texts.lengths)
        self.client = LocalClient(drafter, HERE)
        self.has_room = True
        self.requests = FedRequests(self.client, self._post, MOST, {"share": "outputs"})

    def _post(self, arrivals: Sequence[object]) -> bool:
        return self.has_room and self.matcher.post(arrivals)  # type: ignore[arg-type]

    def open(self, name: str, row: int, prompt: Sequence[int], known: Sequence[int] = ()) -> SeenRow:
        """A request takes the row; what is to be told with the first step of it."""
        self.texts.lengths[row] = 0
        self.emit(row, *prompt, *known)
        return SeenRow(name, row, self.matcher.open(row), len(prompt), 100, len(prompt) + len(known))

    def emit(self, row: int, *tokens: int) -> None:
        length = int(self.texts.lengths[row])
        self.texts.tokens[row, length : length + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        self.texts.lengths[row] += len(tokens)

    def tell(self, *rows: SeenRow, others: Sequence[str] = ()) -> None:
        index = torch.tensor([row.row for row in rows], dtype=torch.int64)
        ids = frozenset([*others, *(row.request_id for row in rows)])
        sighting = self.reader.sighting(rows, index, ids)
        sighting.wait()
        self.requests.take(sighting)

    def drafts(self) -> list[list[int]]:
        drafts = self.matcher.propose()
        return [row[:count] for row, count in zip(drafts.tokens.tolist(), drafts.counts.tolist(), strict=True)]


def later(row: SeenRow) -> SeenRow:
    """The same request, once it was told."""
    return replace(row, known_length=None)


@pytest.fixture
def device(engine: Engine) -> Device:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    return Device(engine)


def test_windows_reach_the_row_and_are_right_for_any_lag(device: Device) -> None:
    row = device.open("a", 0, [7, 1000, 1001])
    device.emit(0, 1002)
    device.tell(row)
    assert device.drafts()[0] == [], "they come with the answer"
    device.tell(later(row))
    assert device.drafts()[0] == [1003, 1004, 1005, 1006]
    device.emit(0, 1003, 1004, 1005)
    assert device.drafts()[0] == [1006, 1007, 1008, 1009]


def test_what_was_emitted_reaches_draftd_also_after_steps_that_were_not_told(device: Device) -> None:
    row = device.open("a", 0, [7])
    device.emit(0, *OTHER[:3])
    device.tell(row)
    for start in range(3, 60, 3):
        device.emit(0, *OTHER[start : start + 3])
    device.tell(later(row))
    second = device.open("b", 1, [8, *OTHER[20:23]])
    device.tell(second)  # without a: it is over, and its output is history
    device.client.open("settles", [], share="none", wait=True)
    device.tell(later(second))
    device.tell(later(second))
    assert device.drafts()[1] == OTHER[23:27]


def test_a_preempted_request_comes_back_with_what_it_had_emitted(device: Device) -> None:
    row = device.open("a", 0, [7, 1000])
    device.emit(0, 1001)
    device.tell(row)
    again = device.open("a", 1, [7, 1000], known=[1001, 1002])
    device.emit(1, 1003)
    device.tell(again)
    device.tell(later(again))
    assert device.drafts()[1] == [1004, 1005, 1006, 1007]


def test_a_request_of_which_too_much_was_emitted_unseen_is_let_go_and_others_are_not(device: Device) -> None:
    gone, stays = device.open("a", 0, [1000, 1001]), device.open("b", 1, [1000, 1001])
    device.tell(gone, stays)
    device.emit(0, *[5] * (END_TOKENS + 1), 1002, 1003)
    device.emit(1, *[5] * (END_TOKENS - 2), 1002, 1003)
    for _ in range(2):
        device.tell(later(gone), later(stays))
    drafts = device.drafts()
    assert drafts[1] == [1004, 1005, 1006, 1007]
    assert drafts[0] != drafts[1]


def test_windows_wait_for_room_and_come_in_order(device: Device) -> None:
    row = device.open("a", 0, [1000, 1001])
    device.has_room = False
    device.tell(row)
    for token in range(1002, 1002 + STAGES + 2):
        device.emit(0, token)
        device.tell(later(row))
    assert device.drafts()[0] == []
    device.has_room = True
    device.tell(later(row))
    assert device.drafts()[0][:2] == [1008, 1009], "of the oldest that waited"
    assert all(device.drafts()[0][:1] == [1008] for _ in range(STAGES))


def test_what_is_taken_away_is_gone_from_the_device(device: Device, engine: Engine) -> None:
    row = device.open("a", 0, [7, 1000, 1001])
    device.tell(row)
    device.tell(later(row))
    assert device.drafts()[0]
    engine.withdraw_corpus(HERE, "c")
    device.tell(later(row))
    device.tell(later(row))
    for _ in range(STAGES):
        left = device.drafts()[0]
    assert left == []


def test_a_request_that_cannot_be_opened_is_counted_and_drafts_from_its_own_text(device: Device) -> None:
    row = replace(device.open("a", 0, [1, 2, 3, 1, 2]), most_new=-1)
    device.tell(row)
    device.tell(later(row))
    assert device.client.health().counters.row_errors == 1
    assert device.drafts()[0] == [3, 1, 2, 3]
