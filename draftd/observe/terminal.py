"""Where people read: names that users gave are shown as they stand, whatever brackets or colons are in them."""

from rich.console import Console
from rich.progress import TextColumn


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Takes no markup and no emoji codes; `width` is in characters, None: the terminal's."""
    return Console(stderr=stderr, width=width, markup=False, emoji=False)


def text_column(text_format: str) -> TextColumn:
    """A column of a progress display, without markup too."""
    return TextColumn(text_format, markup=False)
