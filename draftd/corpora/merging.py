"""When a collection has too many segments, and which of them become one."""

from collections.abc import Sequence

MOST_SEGMENTS = 4  # that a collection has in the long run: every one of them is searched in every step
MOST_UNMERGED = 8  # that it may have until the merge is done
MOST_WITHOUT_ROOM = 32  # that it may have while limits leave no room for the merge


def plan_merge(tokens: Sequence[int]) -> slice | None:
    """The neighbours to merge, of segments given by their tokens, oldest first; None: there are few enough.

    Of the runs of neighbours that bring the number down far enough, the one with the fewest tokens for the square of
    the segments that it saves: then 256 equal loads copy each token five times, while the fewest tokens alone would
    copy it 25 times. Neighbours, so that ages stay in order."""
    most = len(tokens) - MOST_SEGMENTS
    if most < 1:
        return None
    runs = ((start, saved) for saved in range(most, len(tokens)) for start in range(len(tokens) - saved))
    start, saved = min(runs, key=lambda run: sum(tokens[run[0] : run[0] + run[1] + 1]) / run[1] ** 2)
    return slice(start, start + saved + 1)
