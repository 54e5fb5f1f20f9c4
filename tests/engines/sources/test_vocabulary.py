"""Which tokens two vocabularies share, and a text in the other one."""

import numpy as np

from draftd.models.vocabulary import Vocabulary, same_vocabulary, shared_tokens

ASKED: list[int] = []


def spelled(token: int) -> list[int]:
    ASKED.append(token)
    return [5, 6] if token == 3 else []


def test_tokens_are_paired_by_what_they_say() -> None:
    drafter, target = {"a": 4, "b": 0, "\u2581of": 2, "c": 9}, {"b": 7, "\u0120of": 1, "c": 2, "d": 0}
    assert shared_tokens(drafter, target, size=9).tolist() == [[0, 7], [2, 1]]


def test_nothing_shared_is_no_pair() -> None:
    assert shared_tokens({"a": 0}, {"b": 0}, size=1).shape == (0, 2)


def test_what_is_not_shared_is_spelled_and_its_spelling_remembered() -> None:
    ASKED.clear()
    vocabulary = Vocabulary(np.array([10, 11]), np.array([0, 2]), spelled)
    text = np.array([2, 3, 0, 1, 3, 2, 100], np.int32)
    assert vocabulary.to_drafter(text).tolist() == [11, 5, 6, 10, 5, 6, 11]
    assert vocabulary.to_drafter(text).dtype == np.int64
    assert ASKED == [3, 1, 100]
    assert vocabulary.to_drafter(np.empty(0, np.int32)).tolist() == []


def test_with_the_same_vocabulary_ids_stay_and_unknown_ones_go() -> None:
    assert same_vocabulary(3).to_drafter(np.array([2, 0, 3, 1], np.int32)).tolist() == [2, 0, 1]
