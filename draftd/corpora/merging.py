"""When a collection has too many segments, and which of them become one."""

from collections.abc import Sequence

MOST_SEGMENTS = 4  # that a collection has in the long run: every one of them is searched in every step
MOST_UNMERGED = 8  # that it may have until the merge is done


def plan_merge(tokens: Sequence[int]) -> slice | None:
    """The neighbours to merge, of segments given by their tokens, oldest first; None: there are few enough.

    The cheapest run of neighbours that brings the number down: so small ones are merged among themselves, a token is
    copied a few times as its collection grows, and ages stay in order."""
    length = len(tokens) - MOST_SEGMENTS + 1
    if length < 2:
        return None
    start = min(range(len(tokens) - length + 1), key=lambda start: sum(tokens[start : start + length]))
    return slice(start, start + length)
