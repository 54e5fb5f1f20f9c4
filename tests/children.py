"""The processes that this one started."""

import psutil


def children() -> list[psutil.Process]:
    """All but the one that Python itself keeps, once several processes of one pool ran."""
    started = psutil.Process().children()
    return [child for child in started if not any("resource_tracker" in word for word in child.cmdline())]
