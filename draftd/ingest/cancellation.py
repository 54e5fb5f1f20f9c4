"""Calling off what another thread does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancellation:
    """Set once, from any thread; who is at work hears of it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._actions: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        with self._lock:
            return self._set

    def set(self) -> None:
        with self._lock:
            actions = [] if self._set else self._actions
            self._set = True
        for action in actions:
            action()

    @contextmanager
    def calling(self, action: Callable[[], None]) -> Iterator[None]:
        """Within the context `action` is called when this is set; at once if it is already. It must not block."""
        with self._lock:
            already = self._set
            self._actions.append(action)
        try:
            if already:
                action()
            yield
        finally:
            with self._lock:
                self._actions.remove(action)
