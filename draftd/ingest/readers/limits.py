"""What a reader may take, however much a file claims or unpacks to."""

from dataclasses import dataclass

from draftd.ingest.problem import TooLarge

LONGEST_TEXT = 32 << 20  # bytes of one line or text file; one without an end must not fill the memory

# The longest spelling of a token that is worth its place: an id in JSON takes up to 12 bytes, text about 4.
BYTES_A_TOKEN = 64


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Follows from the limit on tokens."""

    max_tokens: int

    @property
    def unpacked_bytes(self) -> int:
        """Of all that a compressed file holds."""
        return BYTES_A_TOKEN * self.max_tokens + (1 << 20)


def too_many_tokens(place: str, max_tokens: int) -> TooLarge:
    """The error for documents above the limit, which `place` takes them over."""
    return TooLarge(f"{place}: the corpus holds more than {max_tokens} tokens, the limit corpora.max_tokens")
