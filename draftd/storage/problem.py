"""The one error of this room."""


class DamagedError(Exception):
    """What lies on the disk, or in an archive, can't be used. The text says which file and what is wrong with it."""
