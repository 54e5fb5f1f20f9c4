"""Text of tokens as they come: a character may need several."""

from collections.abc import Callable, Sequence

UNFINISHED = "\ufffd"  # what a decoder makes of a part of a character


class TokenText:
    """`decode`: the text of a whole output, from its token ids."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._tokens: list[int] = []
        self._shown = ""

    def add(self, token: int) -> str:
        """What the token adds to the text; nothing while it ends inside a character."""
        self._tokens.append(token)
        text = self._decode(self._tokens)
        if text.endswith(UNFINISHED):
            return ""
        added = text[len(self._shown) :]
        self._shown = text
        return added
