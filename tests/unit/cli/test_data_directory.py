"""The directory of a server: held by one, cleaned, and the place of relative socket paths."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from draftd.app.data_directory import DataDirectory
from draftd.app.problem import StartError


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "a" / "b") as directory:
        assert directory.path.stat().st_mode & 0o777 == 0o700
        assert directory.scratch.is_dir()


def test_a_second_server_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with (
        DataDirectory(tmp_path),
        pytest.raises(StartError, match=f"used by the server with process id {os.getpid()}; .*--data-dir"),
        DataDirectory(tmp_path),
    ):
        pass


def test_it_is_free_again_after_a_kill_and_what_lay_under_way_is_gone(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from draftd.app.data_directory import DataDirectory\n"
        "with DataDirectory(Path(sys.argv[1])) as directory:\n"
        "    (directory.scratch / 'body.json').write_text('x')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=60)
    assert killed.returncode == -9
    assert (tmp_path / "incoming" / "body.json").exists()
    with DataDirectory(tmp_path) as directory:
        assert list(directory.scratch.iterdir()) == []


@pytest.mark.parametrize("name", ["collections", "incoming"])
def test_files_of_somebody_else_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "precious").write_text("x")
    with pytest.raises(StartError, match=f"has {name} and no file lock, .*--data-dir"), DataDirectory(tmp_path):
        pass
    assert (tmp_path / name / "precious").read_text() == "x"
    assert not (tmp_path / "lock").exists()


def test_a_disk_that_holds_other_things_will_do(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    for _ in range(2):
        with DataDirectory(tmp_path):
            pass
    assert (tmp_path / "lost+found").is_dir()


def test_relative_socket_paths_lie_in_it(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    assert directory.endpoint("ipc://draftd.sock") == f"ipc://{tmp_path}/draftd.sock"
    assert directory.endpoint("unix:grpc.sock") == f"unix:{tmp_path}/grpc.sock"
    assert directory.endpoint("ipc:///run/x.sock") == "ipc:///run/x.sock"
    assert directory.endpoint("tcp://127.0.0.1:1") == "tcp://127.0.0.1:1"


def test_a_socket_path_that_the_system_would_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="at most 107 bytes"):
        DataDirectory(tmp_path).endpoint(f"ipc://{'x' * 108}")


def test_a_path_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=f"data_dir {tmp_path}/file: "), DataDirectory(tmp_path / "file"):
        pass


def test_one_where_anyone_may_write_must_be_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o1777)
    theirs = tmp_path / "draftd-1"
    theirs.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: theirs.stat().st_uid + 1)
    with pytest.raises(StartError, match="belongs to another user"), DataDirectory(theirs):
        pass
