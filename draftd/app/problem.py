"""The one error of starting a server."""


class StartError(RuntimeError):
    """The server can't start. The text is one line for the operator: what, where, what to do."""
