"""How a request wants its trees made."""

from dataclasses import dataclass
from enum import IntEnum

NO_LIMIT = 2**32 - 1


class Preset(IntEnum):
    """What scores the candidates; the numbers of the wire catalogue."""

    LEARNED = 0
    SUFFIX_DECODING = 1
    NGRAM_BFS = 2
    NGRAM_PROB = 3


@dataclass(frozen=True, slots=True)
class Policy:
    """The keywords of native.DraftPolicy."""

    preset: int = Preset.LEARNED
    max_depth: int = NO_LIMIT  # nodes on one path
    max_breadth: int = NO_LIMIT  # children of one node
    min_survival: float = 0.0  # nodes below are not drafted; the batch's counts too, the higher of the two
    max_spec_factor: float = 1.0  # of suffix_decoding: most nodes for each token of the match
    min_token_prob: float = 0.1  # of suffix_decoding: nodes below are not drafted
