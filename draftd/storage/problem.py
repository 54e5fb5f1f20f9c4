"""The errors of this room."""


class DamagedError(Exception):
    """What lies on the disk, or in an archive, can't be used. The text says which file and what is wrong with it."""


class VersionError(DamagedError):
    """It is of another version of draftd, and there is nothing wrong with it: it must stay as it is."""
