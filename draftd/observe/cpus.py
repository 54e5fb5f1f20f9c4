"""How many processors this process may use: the cgroup's limit, not the host's cores."""

import math
import os
from collections.abc import Callable
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def cpu_count(cgroups: Path = CGROUPS, own_cgroups: Path = OWN_CGROUPS) -> int:
    """At least 1: the smallest of the affinity mask and the quotas of this process's cgroup and all above it.

    A quota of 1.5 processors counts as 2: with one thread a half would stay idle."""
    limits = [float(len(os.sched_getaffinity(0)))]
    for controllers, group in _groups(own_cgroups):
        if controllers == "":
            limits += _quotas(cgroups, group, _quota_v2)
        elif "cpu" in controllers.split(","):
            limits += _quotas(cgroups / "cpu", group, _quota_v1)
    return max(1, math.ceil(min(limits)))


def _groups(own_cgroups: Path) -> list[tuple[str, str]]:
    """(controllers, path) per line of /proc/self/cgroup; the controllers of version 2 are empty."""
    try:
        lines = own_cgroups.read_text().splitlines()
    except OSError:
        return []
    return [(line.split(":", 2)[1], line.split(":", 2)[2]) for line in lines if line.count(":") >= 2]


def _quotas(mount: Path, group: str, quota: Callable[[Path], float | None]) -> list[float]:
    # In a container the path may be that of the host, which is not below the mount: the root then is ours.
    parts = Path(group).parts[1:]
    folders = [mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
    return [limit for folder in folders if (limit := quota(folder)) is not None]


def _quota_v2(folder: Path) -> float | None:
    """`cpu.max` holds "QUOTA PERIOD" in microseconds, QUOTA is "max" without a limit."""
    quota, _, period = _content(folder / "cpu.max").partition(" ")
    return int(quota) / int(period) if quota.isdecimal() and int(period) > 0 else None


def _quota_v1(folder: Path) -> float | None:
    """Two files; a quota of -1 is none."""
    quota, period = _content(folder / "cpu.cfs_quota_us"), _content(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) > 0 else None


def _content(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
