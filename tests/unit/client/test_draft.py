import numpy as np
import pytest

from draftd.client.draft import MalformedTailError, Tails
from draftd.wire import DraftTail, Reason, Source, Status, TailKind


def tail(**changed: bytes) -> DraftTail:
    """Two rows: a tree of three nodes, and nothing for lack of a match."""
    columns = {
        "epoch": np.array([1, 4], "<u4").tobytes(),
        "base": np.array([10, 20], "<u4").tobytes(),
        "status": bytes([Status.OK, Status.OK]),
        "reason": bytes([Reason.NOT_EMPTY, Reason.NO_MATCH]),
        "kind": bytes([TailKind.TREE, TailKind.TREE]),
        "node_end": np.array([3, 3], "<u4").tobytes(),
        "tokens": np.array([7, 8, 9], "<i4").tobytes(),
        "parents": np.array([-1, 0, -1], "<i2").tobytes(),
        "survival": np.array([0.5, 0.25, 0.125], "<f4").tobytes(),
        "source": bytes([Source.OWN_TEXT, Source.CORPUS, Source.CORPUS]),
    }
    return DraftTail(**(columns | changed))


def received(tail: DraftTail, vocabulary_size: int = 0) -> Tails:
    return Tails.received(tail, (tail.request, tail.epoch), vocabulary_size)


def test_a_row_is_cut_out_of_the_columns() -> None:
    draft = Tails(tail()).drafts()[0]
    assert draft.tokens.tolist() == [7, 8, 9]
    assert draft.parents.tolist() == [-1, 0, -1]
    assert draft.survival.tolist() == [0.5, 0.25, 0.125]
    assert draft.source.tolist() == [Source.OWN_TEXT, Source.CORPUS, Source.CORPUS]
    assert (draft.tokens.dtype, draft.parents.dtype) == (np.int32, np.int16)
    assert (draft.survival.dtype, draft.source.dtype) == (np.float32, np.uint8)
    assert (draft.kind, draft.base, draft.epoch, draft.reason) == (TailKind.TREE, 10, 1, Reason.NOT_EMPTY)


def test_an_empty_row_beside_it_says_why() -> None:
    draft = Tails(tail()).drafts()[1]
    assert len(draft) == 0
    assert not draft
    assert (draft.reason, draft.base, draft.epoch) == (Reason.NO_MATCH, 20, 4)


@pytest.mark.parametrize(
    "changed",
    [
        {"epoch": b"\x01\x00\x00\x00"},
        {"status": b"\x00"},
        {"node_end": np.array([3, 4], "<u4").tobytes()},
        {"node_end": np.array([5, 3], "<u4").tobytes()},
        {"survival": b""},
        {"tokens": b"\x01\x02\x03"},
    ],
)
def test_columns_that_disagree_are_an_error_not_a_wrong_draft(changed: dict[str, bytes]) -> None:
    with pytest.raises(MalformedTailError):
        received(tail(**changed))


def test_a_tail_of_an_unknown_kind_is_an_empty_draft() -> None:
    tails = Tails(tail(kind=bytes([9, TailKind.TREE])))
    draft = tails.drafts()[0]
    assert tails.unknown_kinds() == 1
    assert len(draft) == 0
    assert draft.tokens.tolist() == []
    assert draft.reason == Reason.NOT_ASKED


def test_codes_of_a_later_drafter_are_read_as_the_nearest_known() -> None:
    draft = Tails(tail(status=b"\xc8\xc8", reason=b"\xc8\xc8")).drafts()[1]
    assert draft.status == Status.INTERNAL
    assert draft.reason == Reason.NO_MATCH


def test_a_draft_reads_as_what_it_holds() -> None:
    tails = Tails(tail())
    assert repr(tails.drafts()[0]) == "Draft(TREE of 3: [7, 8, 9], base=10, from CORPUS/OWN_TEXT)"
    assert repr(tails.drafts()[1]) == "Draft(empty: NO_MATCH, base=20, epoch=4)"
    refused = Tails(tail(status=bytes([0, Status.INVALID_TOKEN]), reason=bytes([0, Reason.REFUSED])))
    assert repr(refused.drafts()[1]) == "Draft(empty: REFUSED: INVALID_TOKEN, base=20, epoch=4)"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tokens": np.array([7, 8, 100], "<i4").tobytes()}, "token id 100, of a vocabulary of 100"),
        ({"tokens": np.array([-1, 8, 9], "<i4").tobytes()}, "token id -1"),
        ({"parents": np.array([-1, 1, -1], "<i2").tobytes()}, "does not come before it"),
        ({"parents": np.array([-2, 0, -1], "<i2").tobytes()}, "does not come before it"),
        ({"parents": np.array([-1, 0, 3], "<i2").tobytes()}, "does not come before it"),
    ],
)
def test_nodes_that_would_harm_a_verifier_are_an_error(changed: dict[str, bytes], words: str) -> None:
    with pytest.raises(MalformedTailError, match=words):
        received(tail(**changed), vocabulary_size=100)


def test_what_a_drafter_should_send_is_no_error() -> None:
    received(tail(), vocabulary_size=10)
    received(tail(tokens=np.array([7, 8, 2**31 - 1], "<i4").tobytes()))


def test_each_row_has_places_of_its_own() -> None:
    parents = np.array([-1, 0, 0], "<i2").tobytes()
    two_rows = {"node_end": np.array([2, 3], "<u4").tobytes(), "parents": parents}
    with pytest.raises(MalformedTailError, match="node 0 of a row has parent 0"):
        received(tail(**two_rows), vocabulary_size=10)
    received(tail(parents=parents), vocabulary_size=10)


def test_a_draft_is_cut_to_its_first_nodes() -> None:
    draft = Tails(tail()).drafts()[0]
    assert (draft.first(2).tokens.tolist(), draft.first(2).parents.tolist()) == ([7, 8], [-1, 0])
    assert len(draft.first(0)) == 0
    assert draft.first(9).tokens.tolist() == [7, 8, 9]
