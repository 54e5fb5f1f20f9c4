"""The generated files are what the generator makes of the .proto files today."""

from pathlib import Path

import pytest

import draftd.wire
from draftd.wire import corpora, generate

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["contract.binpb", "messages.pyi", "corpora.pyi", "catalogue.py"])
def test_generated_file_equals_a_fresh_generation(name: str, tmp_path: Path) -> None:
    generate.generate(CHECKOUT / "proto", tmp_path)
    committed = CHECKOUT / "draftd/wire" / name
    assert (tmp_path / name).read_bytes() == committed.read_bytes(), "run `make proto` and commit the result"


def test_every_message_of_the_contract_is_exported() -> None:
    assert set(draftd.wire.messages._classes) <= set(draftd.wire.__all__)


def test_every_message_of_the_corpora_service_has_its_class() -> None:
    assert {name for name in corpora._classes if hasattr(corpora, name)} == set(corpora._classes)
