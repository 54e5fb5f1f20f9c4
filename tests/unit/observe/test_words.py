"""Counts as people read them."""

import pytest

from draftd.observe.words import counted


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 corpora"), (1, "1 corpus"), (2, "2 corpora"), (21, "21 corpora"), (101, "101 corpora")]
)
def test_only_one_is_singular(count: int, words: str) -> None:
    assert counted(count, "corpus", "corpora") == words
    assert counted(count, "token") == f"{count} token" + ("" if count == 1 else "s")
