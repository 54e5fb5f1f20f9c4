"""deploy/Dockerfile, read instruction by instruction: this machine may have no engine to build it with."""

import json
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from draftd.config import Settings, load_settings

ROOT = Path(__file__).parents[2]


class Instruction(NamedTuple):
    """One instruction of a Dockerfile, with its continuation lines joined."""

    name: str
    text: str


@pytest.fixture
def stages() -> list[list[Instruction]]:
    """The instructions of each stage."""
    lines = [line for line in (ROOT / "deploy" / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    stages: list[list[Instruction]] = []
    for name, text in re.findall(r"^([A-Z]+) (.*)$", joined, flags=re.MULTILINE):
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, text))
    return stages


def only(stage: list[Instruction], name: str) -> str:
    (text,) = (instruction.text for instruction in stage if instruction.name == name)
    return text


@pytest.fixture
def settings(stages: list[list[Instruction]], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """What a server in the image is told."""
    for name, value in re.findall(r"(DRAFTD_\w+)=(\S+)", only(stages[-1], "ENV")):
        monkeypatch.setenv(name, value)
    return load_settings(None)


def test_both_stages_start_from_the_same_official_image(stages: list[list[Instruction]]) -> None:
    assert [only(stage, "FROM").split()[0] for stage in stages] == ["python:3.11-slim-bookworm"] * 2


def test_packages_come_from_debian_and_pypi_alone(stages: list[list[Instruction]]) -> None:
    commands = " && ".join(text for stage in stages for name, text in stage if name == "RUN")
    assert not re.search(r"curl|wget|git |https?://|--index-url|--find-links", commands)
    assert not any(name == "ADD" for stage in stages for name, _ in stage)


def test_the_compiler_stays_in_the_first_stage(stages: list[list[Instruction]]) -> None:
    installing = [[text for name, text in stage if name == "RUN" and "apt-get" in text] for stage in stages]
    assert [len(commands) for commands in installing] == [1, 0]


def test_it_runs_as_a_user_by_number_who_is_not_root(stages: list[list[Instruction]]) -> None:
    user, group = only(stages[-1], "USER").split(":")
    assert int(user) > 0
    assert int(group) > 0


def test_docker_asks_for_health_over_the_socket_the_server_listens_on(
    stages: list[list[Instruction]], settings: Settings
) -> None:
    _, _, command = only(stages[-1], "HEALTHCHECK").partition("CMD ")
    scheme, _, name = settings.listen.zmq.partition("://")
    assert json.loads(command) == ["draftd", "health", "--endpoint", f"{scheme}://{settings.data_dir}/{name}"]


def test_it_serves_by_default(stages: list[list[Instruction]]) -> None:
    assert json.loads(only(stages[-1], "ENTRYPOINT")) == ["draftd"]
    assert json.loads(only(stages[-1], "CMD")) == ["serve"]


def test_the_build_context_holds_what_the_package_is_built_from() -> None:
    kept = {line.strip("!/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert kept == {"CMakeLists.txt", "cpp", "draftd", "pyproject.toml", project["readme"], *project["license-files"]}
