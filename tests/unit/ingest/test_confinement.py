"""file_path in a posted body: only regular files below configured directories; `..`, links and devices refused."""

import os
from pathlib import Path

import pytest

from draftd.ingest import IngestError
from draftd.ingest.confinement import open_below
from tests.unit.ingest.posts import load_post


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """A directory with a file, and secrets beside it."""
    directory = tmp_path / "allowed"
    (directory / "deep").mkdir(parents=True)
    (directory / "deep" / "docs.jsonl").write_text('{"token_ids": [1, 2]}\n')
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "docs.jsonl").write_text('{"token_ids": [9]}\n')
    return directory


def test_a_file_below_the_directory_is_read(allowed: Path, tmp_path: Path) -> None:
    body = {"file_path": str(allowed / "deep" / "docs.jsonl")}
    assert load_post(tmp_path, body, directories=(tmp_path / "other", allowed)).documents == [[1, 2]]


def test_the_directory_itself_may_be_reached_by_a_link(allowed: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(allowed)
    with open_below((tmp_path / "link",), str(tmp_path / "link" / "deep" / "docs.jsonl")) as file:
        assert file.read()


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("{allowed}/../secret/docs.jsonl", "without '..'"),
        ("{allowed}/deep/../deep/docs.jsonl", "without '..'"),
        ("deep/docs.jsonl", "should be an absolute path"),
        ("{allowed}/deep/docs.jsonl\0.txt", "should be an absolute path"),
        ("{allowed}", "lies below none of corpora.directories"),
        ("{allowed}-not/docs.jsonl", "lies below none of corpora.directories"),
        ("{secret}/docs.jsonl", "lies below none of corpora.directories"),
        ("{allowed}/deep", "not a regular file"),
        ("{allowed}/absent.jsonl", "no such file"),
        ("{allowed}/deep/docs.jsonl/x", "a part of the path is a link or no directory"),
    ],
)
def test_other_paths_are_refused(path: str, complaint: str, allowed: Path, tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=complaint):
        open_below((allowed,), path.format(allowed=allowed, secret=tmp_path / "secret"))


def test_links_are_refused_wherever_they_stand(allowed: Path, tmp_path: Path) -> None:
    (allowed / "file.jsonl").symlink_to(tmp_path / "secret" / "docs.jsonl")
    (allowed / "folder").symlink_to(tmp_path / "secret")
    (allowed / "inside.jsonl").symlink_to(allowed / "deep" / "docs.jsonl")
    for name in ("file.jsonl", "folder/docs.jsonl", "inside.jsonl"):
        with pytest.raises(IngestError, match="a part of the path is a link"):
            open_below((allowed,), str(allowed / name))


def test_a_pipe_is_refused_without_waiting_for_its_writer(allowed: Path) -> None:
    os.mkfifo(allowed / "pipe.jsonl")
    with pytest.raises(IngestError, match="not a regular file"):
        open_below((allowed,), str(allowed / "pipe.jsonl"))


def test_a_device_is_refused() -> None:
    with pytest.raises(IngestError, match="not a regular file"):
        open_below((Path("/dev"),), "/dev/zero")


def test_no_file_stays_open(allowed: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("deep", "deep/absent", "absent/docs.jsonl"):
        with pytest.raises(IngestError):
            open_below((allowed,), str(allowed / name))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
