"""The twin imports nothing of draftd; its codes are those of the wire all the same."""

from enum import IntEnum

import pytest

from draftd import wire
from draftd.reference import events, policy


@pytest.mark.parametrize("enum", ["Status", "Reason", "TailKind", "Source", "Share"])
def test_every_code_of_the_twin_has_the_name_and_number_of_the_proto_file(enum: str) -> None:
    ours: type[IntEnum] = getattr(events, enum)
    theirs: type[IntEnum] = getattr(wire, enum)
    assert {code.name: code.value for code in ours}.items() <= {code.name: code.value for code in theirs}.items()


def test_the_presets_of_the_twin_are_those_of_the_proto_file() -> None:
    assert {code.name: code.value for code in policy.Preset} == {code.name: code.value for code in wire.Preset}


def test_the_numbers_with_a_meaning_are_those_of_the_wire() -> None:
    assert events.NO_TAIL == wire.NO_TAIL
    assert events.ALL_NODES == wire.ALL_VERIFIED
    assert events.BY_BITMAP == wire.BITMAP_VERIFIED
