"""Stop ids as engines have them, and as a drafter takes them."""

from collections.abc import Iterable


def token_ids_among(ids: Iterable[int | None]) -> list[int]:
    """Those that a token can have. Engines and their users say -1 or None for no stop id."""
    return [number for number in ids if number is not None and 0 <= number < 2**31 - 1]
