"""The composition root: builds a server out of the rooms below, and owns signals and the order of stopping."""

from draftd.app.problem import StartError
from draftd.app.server import Endpoints, serve

__all__ = ["Endpoints", "StartError", "serve"]
