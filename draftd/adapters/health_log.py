"""What an engine's log says of its drafter."""

import logging
from operator import attrgetter

from draftd.client.client import ChannelClient
from draftd.client.health import Health

SECONDS_BETWEEN = 60.0

_unanswered = attrgetter("late", "unreachable", "refused", "off")


class HealthLog:
    """Says when steps got no drafts: of the first step at once, later once a minute at most, and when that is over.

    Pure: the clock comes in as `now`, in seconds.
    """

    def __init__(self, client: ChannelClient, logger: logging.Logger) -> None:
        self._client = client
        self._logger = logger
        self._seen = client.health().counters
        self._look_at = 0.0
        self._in_trouble = False

    def look(self, now: float) -> None:
        """Costs nothing between two looks."""
        if now < self._look_at:
            return
        self._look_at = now + SECONDS_BETWEEN
        health = self._client.health()
        before, self._seen = self._seen, health.counters
        late, unreachable, refused, off = (
            count - earlier for count, earlier in zip(_unanswered(self._seen), _unanswered(before), strict=True)
        )
        without = late + unreachable + refused + off
        refusals = self._seen.row_errors - before.row_errors
        if without or refusals:
            self._logger.warning(
                "draftd: %d of %d steps without drafts (%d late, %d no connection, %d refused, %d not asked), "
                "%d refusals of single requests; %s",
                without,
                without + self._seen.steps - before.steps,
                late,
                unreachable,
                refused,
                off,
                refusals,
                _latest(health, is_refusal=bool(refused or refusals)),
            )
        elif self._in_trouble:
            self._logger.info("draftd: drafts come again")
        self._in_trouble = bool(without or refusals)


def _latest(health: Health, *, is_refusal: bool) -> str:
    """A refusal stays named beside the failures that came after it: they don't tell its cause."""
    error = f"last error: {health.last_error}"
    is_hidden = is_refusal and health.last_refusal not in ("", health.last_error)
    return f"last refusal: {health.last_refusal}; {error}" if is_hidden else error
