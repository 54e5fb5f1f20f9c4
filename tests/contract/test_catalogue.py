"""The codes of the core are the codes of the wire."""

import pytest

from draftd import native, wire


@pytest.mark.parametrize("enum", sorted(native.catalogue()))
def test_every_code_of_the_core_has_the_name_and_number_of_the_proto_file(enum: str) -> None:
    ours = {code.name: code.value for code in getattr(wire, enum)}
    theirs = native.catalogue()[enum]
    assert theirs == {name: ours.get(name) for name in theirs}


@pytest.mark.parametrize("enum", ["Preset", "Share", "Source", "TailKind"])
def test_the_core_knows_every_code_of_what_it_handles_alone(enum: str) -> None:
    assert native.catalogue()[enum] == {code.name: code.value for code in getattr(wire, enum)}


def test_the_core_knows_every_reason_that_a_drafter_gives_but_shedding_which_happens_above_it() -> None:
    given_by_clients = {wire.Reason.LATE, wire.Reason.UNREACHABLE, wire.Reason.OFF, wire.Reason.CLOSED}
    expected = {reason.name for reason in wire.Reason if reason not in given_by_clients} - {"SHED"}
    assert set(native.catalogue()["Reason"]) == expected
