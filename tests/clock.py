"""A clock that tests set by hand."""


class Clock:
    """Stands still at `now`, in seconds, until it is set."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
