"""What ends a demo early, ends it in order."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from draftd.demo.server import DemoError


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM, and a terminal that closes, end the demo like Ctrl-C does: in order."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        raise DemoError("interrupted; the server is stopped and its files are gone") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
