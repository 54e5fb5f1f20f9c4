from draftd.breaker import FAILURES_TO_OPEN, FIRST_PROBE_SECONDS, LONGEST_PROBE_SECONDS, CircuitBreaker


def opened(now: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(FAILURES_TO_OPEN):
        breaker.failed(now)
    return breaker


def test_fewer_failures_in_a_row_keep_it_closed() -> None:
    breaker = CircuitBreaker()
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker.failed(now=0.0)
    breaker.succeeded()
    breaker.failed(now=0.0)
    assert not breaker.is_open
    assert breaker.allows(now=0.0)


def test_it_opens_and_asks_nothing_until_the_first_probe() -> None:
    breaker = opened(now=10.0)
    assert breaker.is_open
    assert not breaker.allows(now=10.0 + FIRST_PROBE_SECONDS - 0.001)
    assert breaker.allows(now=10.0 + FIRST_PROBE_SECONDS)


def test_one_probe_at_a_time() -> None:
    breaker = opened(now=0.0)
    assert breaker.allows(now=1.0)
    assert not breaker.allows(now=1.0)


def test_each_failed_probe_doubles_the_wait_up_to_a_limit() -> None:
    breaker = opened(now=0.0)
    now, waits = 0.0, []
    for _ in range(8):
        probe_at = next(now + wait for wait in (0.25, 0.5, 1.0, 2.0, 4.0, 5.0) if breaker.allows(now + wait))
        waits.append(probe_at - now)
        breaker.failed(probe_at)
        now = probe_at
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, LONGEST_PROBE_SECONDS, LONGEST_PROBE_SECONDS, LONGEST_PROBE_SECONDS]


def test_one_success_closes_it_and_forgets_the_waits() -> None:
    breaker = opened(now=0.0)
    assert breaker.allows(now=0.25)
    breaker.failed(now=0.25)
    assert breaker.allows(now=0.75)
    breaker.succeeded()
    assert not breaker.is_open
    for _ in range(FAILURES_TO_OPEN):
        breaker.failed(now=1.0)
    assert breaker.allows(now=1.0 + FIRST_PROBE_SECONDS)
