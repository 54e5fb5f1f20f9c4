"""Text that comes token by token."""

from collections.abc import Sequence

from draftd.demo.token_text import TokenText

PIECES = [b"n", b"\xc3", b"\xa9", b"\xe2\x82", b"\xac", b"x"]  # as a byte-level tokenizer may cut them


def decode(tokens: Sequence[int]) -> str:
    return b"".join(PIECES[token] for token in tokens).decode(errors="replace")


def test_a_character_comes_with_its_last_token() -> None:
    text = TokenText(decode)
    assert [text.add(token) for token in range(len(PIECES))] == ["n", "", "é", "", "€", "x"]
