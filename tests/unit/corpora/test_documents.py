"""Documents of histories as payloads of journals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.corpora.documents import pack, unpack, without
from draftd.storage import DamagedError
from tests.unit.corpora.conftest import NAMESPACE
from tests.unit.corpora.recording import Document, columns, rows

DOCUMENTS = st.lists(
    st.builds(
        Document,
        tokens=st.lists(st.integers(0, 2**31 - 2), max_size=4),
        label=st.text(st.characters(codec="utf-8"), max_size=4),
        time=st.integers(-(2**63), 2**63 - 1),
    ),
    max_size=4,
)


@given(st.lists(DOCUMENTS, max_size=3))
def test_what_is_packed_comes_back_in_order(parts: list[list[Document]]) -> None:
    payloads = [pack(columns(NAMESPACE, "g", 1, part)) for part in parts]
    unpacked = unpack(NAMESPACE, "g", 7, payloads)
    assert rows(unpacked) == [document for part in parts for document in part]
    assert (unpacked.namespace, unpacked.group, unpacked.generation) == (NAMESPACE, "g", 7)


@given(DOCUMENTS, st.data())
def test_what_is_picked_is_left_out(documents: list[Document], data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents)))
    left = without(columns(NAMESPACE, "", 1, documents), np.array(picked, np.bool_))
    assert rows(left) == [document for document, gone in zip(documents, picked, strict=True) if not gone]


@given(DOCUMENTS, st.data())
def test_bytes_that_are_no_documents_are_refused_or_read(documents: list[Document], data: st.DataObject) -> None:
    payload = bytearray(pack(columns(NAMESPACE, "", 1, documents)))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] ^= data.draw(st.integers(1, 255))
    try:
        unpacked = unpack(NAMESPACE, "", 1, [bytes(payload)])
    except DamagedError:
        return
    assert len(rows(unpacked)) == len(documents)


@pytest.mark.parametrize("payload", [b"", b"short", bytes(12) + b"more"])
def test_other_bytes_are_refused(payload: bytes) -> None:
    with pytest.raises(DamagedError, match="holds no documents"):
        unpack(NAMESPACE, "", 1, [payload])
