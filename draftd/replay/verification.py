"""What the target would have done with a draft, read off the recorded output."""

from collections.abc import Sequence
from dataclasses import dataclass

ROOT = -1


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of one verify step."""

    accepted: int  # drafted tokens that agree with the recording
    emitted: int  # those and the bonus token every forward pass yields, cut at the end of the recording
    nodes: int  # distinct nodes drafted: siblings with one token count as one


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

    accepted = 0
    node = ROOT
    remaining = len(recorded) - position
    while accepted < remaining:
        child = children.get((node, recorded[position + accepted]))
        if child is None:
            break
        node = child
        accepted += 1
    return Verification(accepted=accepted, emitted=min(accepted + 1, remaining), nodes=len(children))
