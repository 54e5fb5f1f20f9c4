"""The circuit breaker: stops asking who keeps failing, a drafter or a draft source, and probes it on a timer."""

FAILURES_TO_OPEN = 8  # consecutive
FIRST_PROBE_SECONDS = 0.25
LONGEST_PROBE_SECONDS = 5.0


class CircuitBreaker:
    """Pure: the clock comes in as `now`, in seconds."""

    def __init__(self) -> None:
        self.consecutive_failures = 0
        self._probe_seconds = FIRST_PROBE_SECONDS
        self._probe_at = 0.0

    @property
    def is_open(self) -> bool:
        return self.consecutive_failures >= FAILURES_TO_OPEN

    def allows(self, now: float) -> bool:
        """May it be asked now? While open, once per probe interval."""
        if not self.would_allow(now):
            return False
        if self.is_open:
            self._probe_at = now + self._probe_seconds  # one probe: others wait for its outcome
        return True

    def would_allow(self, now: float) -> bool:
        """The same, if it is not asked after all."""
        return not self.is_open or now >= self._probe_at

    def succeeded(self) -> None:
        self.consecutive_failures = 0
        self._probe_seconds = FIRST_PROBE_SECONDS

    def failed(self, now: float) -> None:
        probe_failed = self.is_open
        self.consecutive_failures += 1
        if probe_failed:
            self._probe_seconds = min(2 * self._probe_seconds, LONGEST_PROBE_SECONDS)
        if self.is_open:
            self._probe_at = now + self._probe_seconds
