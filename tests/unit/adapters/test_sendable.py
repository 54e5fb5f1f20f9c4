"""Any text of Python's can be sent, and none becomes another's."""

from hypothesis import given
from hypothesis import strategies as st

from draftd.adapters.sendable import sendable

TEXT = st.text(st.sampled_from(["\ud800", "\\", "u", "d", "8", "0", "x", "\U00010000", "é"]))


@given(TEXT, TEXT)
def test_two_texts_stay_two_and_both_can_be_sent(one: str, other: str) -> None:
    assert (sendable(one) == sendable(other)) == (one == other)
    assert sendable(one).encode().decode() == sendable(one)


def test_a_spelt_out_half_is_not_the_half() -> None:
    assert sendable("\ud800") == r"\ud800"
    assert sendable(r"\ud800") == r"\\ud800"
