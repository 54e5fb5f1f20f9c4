"""What the build relies on: system packages are named when missing, pins agree, rooms keep their borders."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def check_system(python: Path | str, programs: Path) -> subprocess.CompletedProcess[str]:
    """Runs the check on a machine whose only programs lie in `programs`."""
    return subprocess.run(
        [ROOT / "tools" / "check_system.sh", python],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with all that the check needs of a machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "g++"):
        (folder / name).symlink_to(shutil.which(name) or name)
    return folder


def altered_python(tmp_path: Path, alteration: str) -> Path:
    """A real interpreter that runs `alteration` when it starts."""
    (tmp_path / "sitecustomize.py").write_text(alteration)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


def test_a_complete_machine_passes_in_silence(programs: Path) -> None:
    result = check_system(sys.executable, programs)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("python", ["", "/bin/false"])
def test_no_usable_python_is_named(programs: Path, python: str) -> None:
    result = check_system(python, programs)
    assert result.returncode == 1
    assert result.stderr == (
        "draftd: missing system package(s): python3.11 python3.11-venv python3.11-dev"
        " (on Debian: apt-get install python3.11 python3.11-venv python3.11-dev)\n"
    )


def test_a_missing_compiler_is_named(programs: Path) -> None:
    (programs / "g++").unlink()
    result = check_system(sys.executable, programs)
    assert result.returncode == 1
    assert result.stderr == "draftd: missing system package(s): g++ (on Debian: apt-get install g++)\n"


def test_a_missing_venv_is_named_by_its_package(programs: Path, tmp_path: Path) -> None:
    python = altered_python(tmp_path, "import sys; sys.modules['ensurepip'] = None")
    result = check_system(python, programs)
    assert result.returncode == 1
    assert re.search(r"missing system package\(s\): python3\.\d+-venv \(", result.stderr)


def test_missing_headers_are_named_by_their_package(programs: Path, tmp_path: Path) -> None:
    python = altered_python(tmp_path, "import sysconfig; sysconfig.get_path = lambda name: '/nowhere'")
    result = check_system(python, programs)
    assert result.returncode == 1
    assert re.search(r"missing system package\(s\): python3\.\d+-dev \(", result.stderr)


def test_pinned_build_tools_are_those_the_package_is_built_with() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pinned = {Requirement(line).name: Requirement(line) for line in document["dependency-groups"]["build"]}
    for line in document["build-system"]["requires"]:
        asked = Requirement(line)
        (pin,) = pinned[asked.name].specifier
        assert asked.specifier.contains(Version(pin.version)), line


def test_every_tool_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    sections = re.findall(r"^(?:requires|build|dev) = \[\n(.*?)^\]", text, flags=re.MULTILINE | re.DOTALL)
    assert len(sections) == 3
    for line in "".join(sections).splitlines():
        assert "#" in line or "include-group" in line, line


def test_pybind11_is_included_in_the_bindings_alone() -> None:
    includes = re.compile(r"#\s*include\s*[<\"](pybind11/|Python\.h)")
    sources = [path for path in (ROOT / "cpp").rglob("*") if path.suffix in {".h", ".cpp"}]
    using = {path.relative_to(ROOT / "cpp").parts[0] for path in sources if includes.search(path.read_text())}
    assert using == {"bindings"}
