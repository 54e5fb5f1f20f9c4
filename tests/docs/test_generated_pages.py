"""Pages that are made from the code are those that the code makes."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_committed_pages_are_what_the_generator_writes() -> None:
    pages: dict[Path, str] = runpy.run_path(str(DOCS / "generate.py"))["pages"]()
    assert {path.name for path in pages} == {"configuration.md", "metrics.md"}
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: run python docs/generate.py"
