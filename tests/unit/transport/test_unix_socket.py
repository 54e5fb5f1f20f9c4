import errno
import socket
from pathlib import Path

import pytest

from draftd.transport.unix_socket import claim


def test_a_free_path_stays_free(tmp_path: Path) -> None:
    claim(tmp_path / "s.sock")
    assert not list(tmp_path.iterdir())


def test_a_socket_that_nobody_serves_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    claim(path)
    assert not path.exists()


def test_a_socket_that_is_served_is_left_to_its_server(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(path))
        alive.listen()
        with pytest.raises(OSError, match="Address already in use") as raised:
            claim(path)
        assert raised.value.errno == errno.EADDRINUSE
        assert path.is_socket()


def test_a_file_that_is_no_socket_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(OSError, match="exists and is no socket") as raised:
        claim(path)
    assert raised.value.errno == errno.EEXIST
    assert path.read_text() == "mine"


def test_a_link_is_no_socket(tmp_path: Path) -> None:
    target, link = tmp_path / "target.sock", tmp_path / "link.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(target))
    link.symlink_to(target)
    with pytest.raises(OSError, match="is no socket"):
        claim(link)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=f"no such directory: '{tmp_path}/missing'"):
        claim(tmp_path / "missing" / "s.sock")
