"""A journal that was cut or damaged anywhere gives back a prefix of what was appended, and goes on from there."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from draftd.storage.journal import Journal, mend_journal, read_journal

PAYLOADS = st.lists(st.binary(min_size=1, max_size=20), max_size=6)


@settings(max_examples=40)  # each appended frame is synced
@given(PAYLOADS, PAYLOADS, st.data())
def test_a_cut_journal_has_a_prefix_and_takes_more(first: list[bytes], more: list[bytes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        ends = written(path, first)
        size = data.draw(st.integers(0, ends[-1]), label="bytes that are left")
        with path.open("r+b") as file:
            file.truncate(size)
        whole = sum(end <= size for end in ends[1:])
        mend_journal(path, not_called)
        assert read_journal(path) == first[:whole]
        written(path, more)
        assert read_journal(path) == first[:whole] + more


@settings(max_examples=40)  # each appended frame is synced
@given(PAYLOADS.filter(bool), st.data())
def test_a_damaged_byte_costs_its_frame_alone(payloads: list[bytes], data: st.DataObject) -> None:
    """But when it makes the frame end elsewhere: then it may cost those behind it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        ends = written(path, payloads)
        place = data.draw(st.integers(0, ends[-1] - 1), label="damaged byte")
        content = bytearray(path.read_bytes())
        content[place] ^= data.draw(st.integers(1, 255), label="how")
        path.write_bytes(content)
        hit = sum(end <= place for end in ends) - 1  # -1: the magic
        in_length = hit >= 0 and place < ends[hit] + 4
        left = payloads if hit < 0 else payloads[:hit] if in_length else payloads[:hit] + payloads[hit + 1 :]
        kept_aside: list[str] = []
        for _ in range(2):
            mend_journal(path, lambda _, why: kept_aside.append(why))
            assert read_journal(path) == left
        assert bool(kept_aside) == (not in_length and hit < len(payloads) - 1) or in_length


@settings(max_examples=40)  # each appended frame is synced
@given(PAYLOADS, st.binary(max_size=40))
def test_what_was_never_appended_is_not_read(payloads: list[bytes], tail: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        written(path, payloads)
        with path.open("ab") as file:
            file.write(tail)
        assert read_journal(path) == payloads


def written(path: Path, payloads: list[bytes]) -> list[int]:
    """Where the head and each frame end."""
    with Journal(path) as journal:
        ends = [path.stat().st_size]
        for payload in payloads:
            journal.append(payload)
            ends.append(path.stat().st_size)
    return ends


def not_called(path: Path, why: str) -> None:
    raise AssertionError(f"{path}: {why}")
