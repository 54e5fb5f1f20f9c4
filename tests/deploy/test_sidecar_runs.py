"""The commands of deploy/sidecar.yaml, run as they stand there against a real server, below another directory."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

MANIFEST = Path(__file__).parents[2] / "deploy" / "sidecar.yaml"
DRAFTD = Path(sys.executable).with_name("draftd")
NO_TEMPORARY_DIRECTORY = "import tempfile; tempfile._candidate_tempdir_list = lambda: []"


class Sidecar:
    """The drafter's container of the manifest, with `directory` in the place of its data directory.

    Its root is read-only and no other volume is mounted: as there, Python finds no directory for temporary files."""

    def __init__(self, directory: Path) -> None:
        (document,) = yaml.safe_load_all(MANIFEST.read_text())
        (self._container,) = document["spec"]["template"]["spec"]["initContainers"]
        self._directory = directory
        own = {variable["name"]: self._here(variable["value"]) for variable in self._container["env"]}
        # Any free port: another server may be running on this machine.
        own["DRAFTD_LISTEN__HTTP"] = "127.0.0.1:0"
        (directory / "sitecustomize.py").write_text(NO_TEMPORARY_DIRECTORY)
        self._environment = {**os.environ, **own, "PYTHONPATH": str(directory)}

    def start(self) -> subprocess.Popen[str]:
        arguments = [self._here(argument) for argument in self._container["args"]]
        return subprocess.Popen([DRAFTD, *arguments], env=self._environment, stdout=subprocess.PIPE, text=True)

    def probe(self) -> subprocess.CompletedProcess[str]:
        """The three probes run the same command; test_sidecar.py holds them equal."""
        program, *arguments = self._container["livenessProbe"]["exec"]["command"]
        assert program == DRAFTD.name
        return subprocess.run(
            [DRAFTD, *map(self._here, arguments)], env=self._environment, capture_output=True, text=True, check=False
        )

    def _here(self, text: str) -> str:
        return text.replace("/run/draftd", str(self._directory))


@pytest.fixture
def sidecar(tmp_path: Path) -> Sidecar:
    return Sidecar(tmp_path)


@pytest.fixture
def server(sidecar: Sidecar) -> Iterator[subprocess.Popen[str]]:
    """The server, ready: it has said where it listens."""
    with sidecar.start() as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
        process.kill()


def test_the_probe_succeeds_while_it_serves(sidecar: Sidecar, server: subprocess.Popen[str]) -> None:
    result = sidecar.probe()
    assert result.returncode == 0, result.stderr
    assert server.poll() is None


def test_the_probe_fails_where_nothing_serves(sidecar: Sidecar) -> None:
    assert sidecar.probe().returncode != 0


def test_the_probe_fails_while_it_hangs(sidecar: Sidecar, server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGSTOP)
    assert sidecar.probe().returncode != 0


def test_it_ends_with_success_when_the_pod_ends(server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0
