"""The processor count follows the cgroup's limit, not the host's cores."""

import os
from pathlib import Path

import pytest

from draftd.observe.cpus import cpu_count


@pytest.fixture(autouse=True)
def host_of_64_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(64)))


def counted(root: Path, own: str, files: dict[str, str]) -> int:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "own").write_text(own)
    return cpu_count(root, root / "own")


@pytest.mark.parametrize(
    ("quota", "count"),
    [("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("max 100000", 64), ("9900000 100000", 64)],
)
def test_quota_of_version_2(quota: str, count: int, tmp_path: Path) -> None:
    assert counted(tmp_path, "0::/pod/box\n", {"pod/box/cpu.max": quota}) == count


def test_a_limit_further_up_holds_too(tmp_path: Path) -> None:
    files = {"pod/cpu.max": "300000 100000", "pod/box/cpu.max": "max 100000"}
    assert counted(tmp_path, "0::/pod/box\n", files) == 3


def test_in_a_container_the_root_is_ours(tmp_path: Path) -> None:
    assert counted(tmp_path, "0::/path/of/the/host\n", {"cpu.max": "400000 100000"}) == 4


@pytest.mark.parametrize(("quota", "count"), [("250000", 3), ("-1", 64)])
def test_quota_of_version_1(quota: str, count: int, tmp_path: Path) -> None:
    files = {"cpu/box/cpu.cfs_quota_us": quota, "cpu/box/cpu.cfs_period_us": "100000"}
    assert counted(tmp_path, "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n", files) == count


def test_without_cgroups_the_affinity_mask_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 5})
    assert cpu_count(tmp_path, tmp_path / "absent") == 2
