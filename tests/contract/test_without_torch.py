"""Where torch can't be had draftd serves as ever, and whoever asks for a draft model learns what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from draftd.client import Client
from tests.faults.process import ServerProcess

PATIENT = 10.0  # seconds; a slow machine is not a late answer
TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]

ASKS = """
from draftd.sources import REGISTRY, Need, SourceError
assert "draft_model" in REGISTRY.names()
for ask in (lambda: REGISTRY.find("draft_model"), lambda: REGISTRY.make("draft_model", {}, frozenset(Need))):
    try:
        ask()
    except SourceError as error:
        print(error)
"""


@pytest.fixture
def no_torch(tmp_path: Path) -> str:
    """A folder that hides the packages, also where they are installed."""
    for name in ("torch", "transformers"):
        (tmp_path / f"{name}.py").write_text(f'raise ModuleNotFoundError("No module named {name!r}")\n')
    return str(tmp_path)


def test_a_server_drafts(no_torch: str, tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, PYTHONPATH=no_torch) as server,
        Client(server.zmq, deadline=PATIENT) as client,
    ):
        request = client.open("r", TEXT, wait=True)
        assert request.step([4], budget=4).tokens.tolist()[:3] == [5, 6, 7]


def test_who_asks_for_a_draft_model_is_told_what_to_install(no_torch: str) -> None:
    environment = {**os.environ, "PYTHONPATH": no_torch}
    asked = subprocess.run([sys.executable, "-c", ASKS], env=environment, capture_output=True, text=True, check=False)
    assert asked.stderr == ""
    assert asked.stdout.splitlines() == 2 * [
        "draft source 'draft_model': No module named 'torch'; install with: pip install 'draftd[models]'"
    ]
