from collections.abc import Callable

import numpy as np
import pytest

from draftd.client.columns import prompt_column, token_column

OUT_OF_RANGE = [2**31, 2**32 - 1, 2**40, -1, -(2**31), -(2**40)]


def array_column(tokens: list[int]) -> bytes:
    return prompt_column(np.array(tokens))


@pytest.mark.parametrize("column", [token_column, prompt_column, array_column])
@pytest.mark.parametrize("token", OUT_OF_RANGE)
def test_an_id_that_is_no_token_reaches_the_drafter_at_its_position_to_be_refused(
    column: Callable[[list[int]], bytes], token: int
) -> None:
    sent = np.frombuffer(column([5, token, 7]), "<i4")
    assert sent[0] == 5
    assert sent[1] < 0
    assert sent[2] == 7


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_prompts_may_be_arrays_of_any_integer_type(dtype: str) -> None:
    assert prompt_column(np.array([1, 2, 100], dtype)) == np.array([1, 2, 100], "<i4").tobytes()


def test_tokens_may_be_numpy_integers() -> None:
    assert token_column(list(np.array([1, 2], np.int64))) == np.array([1, 2], "<i4").tobytes()


def test_an_empty_prompt_is_a_prompt() -> None:
    assert prompt_column([]) == b""


def test_text_is_no_token() -> None:
    with pytest.raises(ValueError, match="token ids are integers, not 'a'"):
        token_column(["a"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="token ids are integers, not 'b'"):
        prompt_column([1, "b"])
    with pytest.raises(ValueError, match="one row of integers"):
        prompt_column(np.array(["a", "b"]))


def test_a_table_is_no_prompt() -> None:
    with pytest.raises(ValueError, match=r"not \[1, 2\]; give a row"):
        prompt_column([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="not 2 dimensions"):
        prompt_column(np.array([[1, 2], [3, 4]]))
