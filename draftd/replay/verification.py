"""What the target would have done with a draft, read off the recorded output."""

from collections.abc import Sequence
from dataclasses import dataclass

ROOT = -1


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of one verify step."""

    path: tuple[int, ...]  # the drafted nodes that agree with the recording, from the root down
    emitted: int  # those and the bonus token every forward pass yields, cut at the end of the recording
    nodes: int  # distinct nodes drafted: siblings with one token count as one

    @property
    def accepted(self) -> int:
        """Drafted tokens that agree with the recording."""
        return len(self.path)


def verify(tokens: Sequence[int], parents: Sequence[int], recorded: Sequence[int], position: int) -> Verification:
    """Follows the longest root path of the draft that agrees with `recorded[position:]`.

    `parents[i]` is the index of node i's parent, smaller than i, or -1 for the root. At least one recorded token must
    remain.
    """
    children: dict[tuple[int, int], int] = {}
    first_alike: list[int] = []
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        parent = parent if parent == ROOT else first_alike[parent]
        first_alike.append(children.setdefault((parent, token), node))

    path: list[int] = []
    node = ROOT
    remaining = len(recorded) - position
    while len(path) < remaining:
        child = children.get((node, recorded[position + len(path)]))
        if child is None:
            break
        node = child
        path.append(node)
    return Verification(path=tuple(path), emitted=min(len(path) + 1, remaining), nodes=len(children))
