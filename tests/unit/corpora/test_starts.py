"""What a start makes of corpora on the disk, damaged or not, and of configured ones."""

import shutil
from pathlib import Path

import pytest

from draftd.corpora import OverLimit
from tests.unit.corpora.conftest import NAMESPACE, SMALL, Shelf, key


def test_a_start_below_what_is_on_the_disk_says_which_limit(shelf: Shelf) -> None:
    shelf.add({f"{number}": list(range(1000)) * 100 for number in range(4)})
    with pytest.raises(OverLimit, match=r"limits\.namespace_bytes"):
        shelf.restart(**SMALL)


def test_a_damaged_segment_costs_its_corpus_alone(shelf: Shelf) -> None:
    shelf.add({"a": [1]}, "docs")
    shelf.add({"b": [2]}, "other")
    (segment,) = [
        path for path in shelf.files(".segment") if b"other" not in (path.parent / "manifest.json").read_bytes()
    ]
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    shelf.restart()
    assert shelf.library.token_counts(NAMESPACE) == {"other": 1}
    assert [path.name for path in (shelf.folder / "quarantine").iterdir()] == [segment.parent.name]
    shelf.add({"a": [1]}, "docs")


def manifest_beside(segment: Path) -> str:
    return (segment.parent / "manifest.json").read_text()


@pytest.mark.parametrize("how", ["missing", "cut", "another"])
def test_a_segment_that_is_not_the_manifests_is_damage(how: str, shelf: Shelf) -> None:
    shelf.add({"a": [1, 2, 3]}, "docs")
    shelf.add({"b": [2]}, "other")
    first, second = shelf.files(".segment")
    if how == "missing":
        first.unlink()
    elif how == "cut":
        first.write_bytes(first.read_bytes()[:-8])
    else:
        shutil.copy(second, first)
    shelf.restart()
    assert len(shelf.library.token_counts(NAMESPACE)) == 1
    assert len(list((shelf.folder / "quarantine").iterdir())) == 1


def test_of_two_folders_for_one_corpus_one_is_put_aside(shelf: Shelf) -> None:
    shelf.add({"a": [1, 2, 3]})
    (folder,) = (shelf.folder / "collections").iterdir()
    shutil.copytree(folder, folder.with_name("copy"))
    shelf.restart()
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2, 3]]
    assert len(list((shelf.folder / "quarantine").iterdir())) == 1
    assert shelf.library._workshop.ledger.used() == shelf.engine.corpora[NAMESPACE]["docs"][0].memory_size


def test_configured_files_are_read_when_they_changed(shelf: Shelf, tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text('{"token_ids": [1, 2]}\n')
    shelf.library.load_configured(key(), file)
    before = shelf.files(".segment")
    shelf.restart()
    shelf.library.load_configured(key(), file)
    assert shelf.files(".segment") == before, "it was not read again"
    file.write_text('{"token_ids": [1, 2, 3]}\n')
    shelf.library.load_configured(key(), file)
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2, 3]]
    shelf.library.remove_configured_except([key()])
    assert shelf.library.token_counts(NAMESPACE) == {"docs": 3}
    shelf.library.remove_configured_except([])
    assert shelf.library.token_counts(NAMESPACE) == {}


def test_a_configured_corpus_that_was_added_to_stays_as_it_is(
    shelf: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text('{"token_ids": [1]}\n')
    shelf.library.load_configured(key(), file)
    shelf.add({"a": [2]})
    file.write_text('{"token_ids": [3, 4]}\n')
    shelf.library.load_configured(key(), file)
    assert f"corpus 'docs' of acme/m is not read from {file}, for it was loaded or added to by hand" in caplog.text
    shelf.library.remove_configured_except([])
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1], [2]]
