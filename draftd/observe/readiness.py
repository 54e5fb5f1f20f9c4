"""Whether the server serves: asked by /readyz, told by who starts and stops the parts."""

from collections.abc import Iterable


class Readiness:
    """Ready when every part is up. Belongs to the event loop's thread."""

    def __init__(self, parts: Iterable[str]) -> None:
        self._waiting = list(parts)

    def up(self, part: str) -> None:
        self._waiting.remove(part)

    def stopping(self) -> None:
        """From here on it is never ready again."""
        self._waiting.append("shutdown")

    def waiting_for(self) -> list[str]:
        """Empty when ready."""
        return list(self._waiting)
