"""The example of a draft source, installed as a package, drafts in a process that knows nothing else of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from draftd.demo.sample import SAMPLE
from tests.example_package import ROOT, installed

RECORDING = SAMPLE / "specbench_math.jsonl.gz"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed("source_plugin", tmp_path_factory.mktemp("plugin"))


def python(site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, *words]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


def replay(site: Path, source: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return python(site, "-m", "draftd", "replay", RECORDING, "--requests", "5", "--preset", source, *words)


def test_a_recording_is_replayed_against_the_installed_source(site: Path, tmp_path: Path) -> None:
    ran = replay(site, "last_pair", "--json", tmp_path / "report.json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["settings"]["source"] == "last_pair"
    (workload,) = report["workloads"]
    assert workload["emitted_per_step"] > 1
    assert workload["calibration"] is not None  # it states survivals


def test_the_installed_source_keeps_what_every_source_promises(site: Path) -> None:
    ran = python(
        site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_sources.py", "-k", "last_pair"
    )
    assert ran.returncode == 0, ran.stdout


def test_without_the_package_the_source_is_not_known(tmp_path: Path) -> None:
    ran = replay(tmp_path, "last_pair")
    assert ran.returncode == 1
    assert ran.stderr.startswith("draftd: there is no preset or draft source 'last_pair'; choose one of learned,")


def test_a_package_that_would_shadow_a_source_of_draftds_own_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "shadow-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shadow\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[draftd.sources]\nngram = shadow:Ngram\n")
    ran = replay(tmp_path, "ngram")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "draftd: draft source 'ngram' is draftd's own, and package shadow would shadow it\n"
