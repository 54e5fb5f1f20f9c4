"""The C++ core: indexes, sessions and drafting, as a Python extension."""

from draftd.native._core import Index, IntegrityError, Level

__all__ = ["Index", "IntegrityError", "Level"]
