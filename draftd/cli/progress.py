"""A line on standard error that says how far a command is, if that is a terminal; it leaves nothing behind."""

from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TimeRemainingColumn

from draftd.observe import terminal


def progress_in_bytes() -> Progress:
    """Shown within its context."""
    console = terminal.console(stderr=True)
    columns = (
        SpinnerColumn(),
        terminal.text_column("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
