"""How a command says that it could not do its work."""

from collections.abc import Iterator
from contextlib import contextmanager


class Failure(Exception):
    """The text is one line for a person."""

    exit_code = 1


class Interrupted(Failure):
    """Ctrl-C ended the command; the text says what it left."""

    exit_code = 130  # what a shell says of a command that Ctrl-C ended


@contextmanager
def failing_on(*errors: type[Exception]) -> Iterator[None]:
    """Turns errors whose text is for a person into a Failure."""
    try:
        yield
    except errors as error:
        raise Failure(in_words(error)) from None


def in_words(error: Exception) -> str:
    """The text of an error; of one of the operating system what it says without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
